class Callback: pass
class MobulaDaskCallback: pass
class RayDaskCallback: pass
ProgressBar = None
