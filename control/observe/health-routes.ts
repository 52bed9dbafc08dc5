/** Health, liveness and readiness. The two response shapes of health: SPECIFICATION.md §4.3. */
import { Hono } from 'hono'
import { openToAll, requiresCredential } from '../auth/requires.ts'
import type { Store } from '../../schema/open.ts'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import type { NodesPort } from '../../schema/contracts/nodes.ts'
import { ApiError, storageUnavailable } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'

const SERVICE = 'tollgate'

/** `GET /health`: public and without envelope, on both listeners. */
export const publicHealthRoute = (version: string) =>
  new Hono<ControlEnv>().get('/health', openToAll(), (c) =>
    c.json({ status: 'ok', service: SERVICE, version }),
  )

interface ProbeDeps {
  readonly store: Pick<Store, 'storage'>
  readonly disk?: Pick<Store['storage'], 'problem'> | undefined
  readonly nodes: Pick<NodesPort, 'condition' | 'differingSettings'>
  /** Of the last run; absent: it is not. */
  readonly isJournalLost?: boolean | undefined
}

/**
 * `/livez`: the process responds. `/readyz`: it accepts calls; 503 during startup, while draining, when another
 * process has its name, and while the database or the journal of calls cannot be written. `database` says whether the server of it answers:
 * without it calls go on for a moment. Nodes whose settings differ are ready: such a setting is changed on one after the other. So is one
 * that misses the journal of its last run: calls of today are none of it.
 */
export const probeRoutes = (
  engine: Pick<EnginePort, 'isReady' | 'isDraining'>,
  { store: { storage }, disk, nodes, isJournalLost }: ProbeDeps,
) =>
  new Hono<ControlEnv>()
    .get('/livez', openToAll(), (c) => ok(c, { status: 'ok' }))
    .get('/readyz', openToAll(), (c) => {
      if (engine.isDraining())
        throw new ApiError(503, 'draining', 'New calls are not accepted: the process is draining')
      if (!engine.isReady()) throw new ApiError(503, 'not_ready', 'SIP is not ready yet')
      if (nodes.condition === 'fenced')
        throw new ApiError(
          503,
          'node_fenced',
          'Another process has taken over the name of this node',
        )
      if (nodes.condition === 'unheard')
        throw new ApiError(503, 'node_unheard', 'The database server does not answer this node')
      // Calls go on without the server until then.
      const problem = disk?.problem ?? storage.problem
      if (problem && problem.code !== 'server_unavailable') throw storageUnavailable(problem.reason)
      const settings = nodes.differingSettings.size > 0 ? 'different' : 'same'
      return ok(c, {
        status: 'ready',
        database: problem ? 'unavailable' : 'available',
        settings,
        journal: isJournalLost === true ? 'lost' : 'whole',
      })
    })

/** `GET /api/v1/health`: success for a valid key. Mounted under `/api/v1`. */
export const keyHealthRoute = (version: string) =>
  new Hono<ControlEnv>().get('/health', requiresCredential(), (c) =>
    ok(c, { status: 'ok', service: SERVICE, version }),
  )
