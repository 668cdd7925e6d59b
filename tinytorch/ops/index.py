"""TEMPORARY stand-in so that the rest can run while the real ops/index.py is being written: overwrite it."""
import builtins
from typing import Any
import numpy as np
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.op import op
from tinytorch.autograd.inplace import in_place, written
from tinytorch.ops.shape import view_op
__all__ = ["gather","index_select","masked_fill","scatter","scatter_add","where","nonzero","masked_select","take_along_dim", "argsort", "sort", "topk"]
@op(x=lambda g, key, shape: _get_basic(g, key))
def _embed_basic(x, key, shape):
    out=np.zeros_like(x, shape=shape); out[key]=x; return out
@op(name="Select", view=True, x=lambda g, key, x_shape: _embed_basic(g, key, x_shape))
def _get_basic(x, key): return x[key]
@op(x=lambda g, key: _get_adv(g, key))
def _embed_adv(x, key, shape):
    out=np.zeros_like(x, shape=shape); np.add.at(out, key, x); return out
@op(name="Index", x=lambda g, key, x_shape: _embed_adv(g, key, x_shape))
def _get_adv(x, key): return x[key]
def _key(key):
    adv=False; out=[]
    for k in (key if isinstance(key, tuple) else (key,)):
        if isinstance(k, Tensor):
            if k._array.ndim==0 and k._array.dtype.kind in "iu": k=int(k._array)
            else: k=k._array; adv=True
        elif isinstance(k,(list,np.ndarray)): k=np.asarray(k); adv=True
        elif isinstance(k,slice): k=slice(*[None if v is None else int(v) for v in (k.start,k.stop,k.step)])
        out.append(k)
    return tuple(out), adv
def getitem(x, key):
    k, adv=_key(key)
    if not adv and Ellipsis not in k: k=k+(Ellipsis,)
    try: return _get_adv(x,k) if adv else _get_basic(x,k)
    except IndexError as e: raise IndexError(str(e)) from None
@op(x=lambda g: wrap(np.zeros_like(g._array)), y=lambda g: g, broadcasts=True)
def copy(x, y, non_blocking=False): return np.broadcast_to(y, x.shape).astype(x.dtype)
copy_=in_place(copy,"copy_")
@op(name="Fill", x=lambda g: wrap(np.zeros_like(g._array)))
def fill(x, value): return np.full_like(x, value._array.item() if isinstance(value, Tensor) else value)
fill_=in_place(fill,"fill_")
def zero_(x): return fill_(x,0)
@op(x=lambda g,key: _put(g,key,0), v=lambda g,key: _get_adv(g,key), broadcasts=True)
def _put(x,key,v):
    x=x.copy(); x[key]=v; return x
_put_=in_place(_put)
def setitem(x,key,value):
    k,adv=_key(key)
    if adv: _put_(x,k,value)
    else:
        v=_get_basic(x,k if Ellipsis in k else k+(Ellipsis,))
        copy_(v,value) if isinstance(value,Tensor) else fill_(v,value)
@op(x=lambda g, mask: masked_fill(g, mask, 0), mask=None, value=lambda g, mask: masked_fill(g, ~mask, 0), broadcasts=True)
def masked_fill(x, mask, value): return np.where(mask, value, x).astype(x.dtype)
@op(condition=None, x=lambda g, condition: masked_fill(g, ~condition, 0), y=lambda g, condition: masked_fill(g, condition, 0), broadcasts=True)
def where(condition, x, y): return np.where(condition, x, y)
@op(x=lambda g, dim, index, x_shape: scatter_add(wrap(np.zeros_like(g._array, shape=x_shape)), dim, index, g), index=None)
def gather(x, dim, index): return np.take_along_axis(x, index, dim)
def _ix(x,dim,index):
    ix=list(np.indices(index.shape)); ix[dim]=index; return tuple(ix)
@op(x=lambda g, dim, index: scatter(g,dim,index,0.0), index=None, src=lambda g, dim, index: gather(g,dim,index))
def scatter(x, dim, index, src):
    x=x.copy(); np.put_along_axis(x,index,src,dim); return x
@op(x=lambda g: g, index=None, src=lambda g, dim, index: gather(g,dim,index))
def scatter_add(x, dim, index, src):
    x=x.copy(); np.add.at(x,_ix(x,dim,index),src); return x
def index_select(x, dim, index): return getitem(x,(slice(None),)*(dim % x.ndim)+(index,))
def nonzero(x, as_tuple=False):
    r=np.nonzero(x._array); return tuple(map(wrap,r)) if as_tuple else wrap(np.stack(r,-1))
def masked_select(x, mask): return getitem(x, mask)
def take_along_dim(x,i,dim): return gather(x,dim,i)
def argsort(x, dim=-1, descending=False, stable=False): return wrap(np.argsort(-x._array if descending else x._array, axis=dim, kind="stable"))
def sort(x, dim=-1, descending=False, stable=False):
    i=argsort(x,dim,descending); return gather(x,dim if dim>=0 else dim+x.ndim,i), i
def topk(x,k,dim=-1,largest=True,sorted=True):
    v,i=sort(x,dim,largest); return v.narrow(dim,0,k), i.narrow(dim,0,k)
METHODS_TMP = dict(__getitem__=getitem, __setitem__=setitem, copy_=copy_, fill_=fill_, zero_=zero_)
for _n in __all__: METHODS_TMP[_n]=globals()[_n]
METHODS_TMP["masked_fill_"]=in_place(masked_fill)
for _n,_f in METHODS_TMP.items():
    if _n!="where": setattr(Tensor,_n,_f)
Tensor.where=lambda x,c,y: where(c,x,y)
