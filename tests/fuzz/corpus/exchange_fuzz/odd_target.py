from ÿÿÿÿport y
def f():
   !cfg = y()
    cfg.model.a = [1, "b", {"c": (2,)}]  # c
    cfg.m.d = r"""t"""
    return cfg
