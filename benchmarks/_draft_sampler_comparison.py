"""prototype comparison on recorded surrogates"""
import os,sys,time
os.environ["OMP_NUM_THREADS"]="1"
sys.path[:0]=['/work/wt/gp','/work/wt/gp/benchmarks']
import numpy as np, warnings; warnings.simplefilter("ignore")
from dataclasses import dataclass
from sklearn.gaussian_process import GaussianProcessRegressor as G
from sklearn.gaussian_process.kernels import *
from moew.samplers import GpBucb, Ball, RandomSampler
from moew.samplers._gp_bucb import _deviations,_without_failures
from moew.samplers._ascent import Argmax
from moew.samplers._gaussian_process import Posterior
from moew.samplers._matern import fit_matern
T=np.load('/work/wt/gp/docs/results/samplers/recorded.npz')
class F:
    def __init__(s,name):
        s.A=T[name+' alphas'].astype(float); S=T[name+' scores'].astype(float)
        rng=np.random.default_rng(0); i=rng.permutation(len(s.A))[:2000]; s.A=s.A[i]; S=S[i]
        s.R=np.linalg.norm(s.A,axis=1).max(); s.d=s.A.shape[1]; s.m,s.s=S.mean(),S.std()
        y=(S-s.m)/s.s
        j=rng.permutation(len(y))[:600]
        g=G(ConstantKernel()*Matern(np.ones(s.d)*3,nu=1.5,length_scale_bounds=(.05,100))+WhiteKernel(.05)); g.fit(s.A[j],y[j])
        s.k=g.kernel_; s.noise=np.sqrt(max(g.kernel_.k2.noise_level,1e-6))
        s.k1=g.kernel_.k1; K=s.k(s.A); s.w=np.linalg.solve(K,y)
        from scipy.spatial import cKDTree
        s.L=1/np.asarray(g.kernel_.k1.k2.length_scale); s.tree=cKDTree(s.A*s.L); s.y=y
    def __call__(s,a):
        v=s.k1(a,s.A)@s.w
        near=s.y[s.tree.query(a*s.L,k=8)[1]]
        return np.clip(v,near.min(1),near.max(1))
@dataclass(frozen=True)
class New:
    p: float=68.3; q: float=68.3; pw: float=0.5; ps: float=1.0
    def propose(self,alphas,scores,*,pending,k,domain,rng):
        f=_without_failures(scores); y=(f-f.mean())/(f.std() or 1)
        kern=fit_matern(alphas,y,size=domain.size,noise=(1e-6,2.0),prior_width=self.pw*np.sqrt(domain.n_dims),prior_spread=self.ps)
        g=Posterior.given(kern,alphas,y)
        up,down=_deviations(self.p),-_deviations(self.q)
        am=Argmax(g,up,alphas,f,domain,rng,n_more=k)
        out=[]
        for j in range(k):
            out.append(am.find()); am.add(out[-1],down)
        return np.array(out)
def run(f,s,seed,B=20,K=10,noise=True,init=None):
    rng=np.random.default_rng(seed); dom=Ball(f.d,f.R)
    A=np.vstack([np.zeros(f.d),dom.sample(rng,K-1)]); S=f(A)+(f.noise*rng.standard_normal(K) if noise else 0); curve=[]
    for b in range(B):
        t=f(A)[np.argmax(S)]; curve.append(t)
        if b==B-1: break
        new=s.propose(A,S,pending=np.empty((0,f.d)),k=K,domain=dom,rng=np.random.default_rng([seed,b]))
        A=np.vstack([A,new]); S=np.append(S,f(new)+(f.noise*rng.standard_normal(K) if noise else 0))
    return curve
if __name__=="__main__":
    names=sys.argv[1].split(','); R=int(sys.argv[2]); which=sys.argv[3].split(',') if len(sys.argv)>3 else None
    V={'random':RandomSampler(),'paper':GpBucb(width='domain'),'now':GpBucb(),'new':New(),'new .25':New(pw=.25),'new ps2':New(ps=2.0),'new p38':New(p=38.3,q=38.3),'new p90':New(p=90,q=90),'new q90':New(q=90.),'new p38q90':New(p=38.3,q=90.)}
    for n in names:
        f=F(n); print(n,'d',f.d,'noise',round(f.noise,3),flush=True)
        for v,s in V.items():
            if which and v not in which: continue
            t=time.time(); c=np.array([run(f,s,seed) for seed in range(R)]); m=c.mean(0)
            print(f"  {v:10s}",' '.join(f"{m[b]:.3f}" for b in (1,2,4,7,10,14,19)),'±%.3f'%(2*c[:,-1].std()/np.sqrt(R)),f"{(time.time()-t)/R:.1f}s",flush=True)
