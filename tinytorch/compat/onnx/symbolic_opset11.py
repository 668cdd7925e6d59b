"""`torch.onnx.symbolic_opset11`: how operators are exported, which they are not."""
