/** Health, liveness and readiness. The two response shapes of health: SPECIFICATION.md §4.3. */
import { Hono } from 'hono'
import type { EnginePort, SettingInForce } from '../../schema/contracts/engine.ts'
import type { InstancesPort } from '../../schema/contracts/instances.ts'
import type { Store } from '../../schema/storage/store.ts'
import { openToAll, requiresCredential, requiresGlobal } from '../auth/requires.ts'
import { ApiError, storageUnavailable } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { bare, data } from '../http/operation.ts'
import { describeRoute } from '../http/validate.ts'
import { z } from 'zod'

const setting = z
  .strictObject({
    name: z.string(),
    value: z.string().nullable().describe('Null when it is unset, and for secrets.'),
    source: z.enum(['environment', 'file', 'default']).describe('`file`: `.env`.'),
    allowed: z.string(),
    meaning: z.string(),
    is_set: z.boolean(),
    is_secret: z.boolean(),
    when_unset: z.string(),
  })
  .meta({ id: 'Setting' })

const settingsView = z
  .strictObject({
    settings: z.array(setting),
    notes: z
      .array(z.string())
      .describe(
        'Settings without effect, and listeners that others reach and that do not encrypt.',
      ),
  })
  .meta({ id: 'Settings' })

const SERVICE = 'tollgate'

const health = z
  .strictObject({ status: z.literal('ok'), service: z.string(), version: z.string() })
  .meta({ id: 'Health' })
const exampleHealth = { status: 'ok', service: SERVICE, version: '0.1.0' }

/** `GET /health`: public and without envelope, on both listeners. */
export const publicHealthRoute = (version: string) =>
  new Hono<ControlEnv>().get(
    '/health',
    describeRoute({
      id: 'getPublicHealth',
      tag: 'System',
      summary: 'Check that the service is up. Public.',
      answer: bare(health, exampleHealth),
    }),
    openToAll(),
    (c) => c.json({ status: 'ok', service: SERVICE, version }),
  )

interface ProbeDeps {
  readonly store: Pick<Store, 'storage'>
  readonly disk?: Pick<Store['storage'], 'problem'> | undefined
  readonly instances: Pick<InstancesPort, 'condition' | 'differingSettings'>
  /** Whether the journal of the last run is lost; absent: it is not. */
  readonly isJournalLost?: boolean | undefined
}

/**
 * `/livez`: the process responds. `/readyz`: it accepts calls; 503 during startup, while draining,
 * when another process has its name, and while the database or the journal of calls cannot be
 * written. `database` says whether the server of it answers: without it calls go on for a moment.
 * Instances whose settings differ are ready: such a setting is changed on one after the other. So
 * is one that misses the journal of its last run: calls of today are none of it.
 */
type ReadyEngine = Pick<EnginePort, 'isReady' | 'isDraining'>

export const probeRoutes = (engine: ReadyEngine, deps: ProbeDeps) =>
  new Hono<ControlEnv>().route('/', getLivenessRoute()).route('/', getReadinessRoute(engine, deps))

const getLivenessRoute = () =>
  new Hono<ControlEnv>().get(
    '/livez',
    describeRoute({
      id: 'getLiveness',
      tag: 'System',
      summary: 'Check that the process is alive',
      answer: data(z.strictObject({ status: z.literal('ok') }), { status: 'ok' }),
    }),
    openToAll(),
    (c) => ok(c, { status: 'ok' }),
  )

const getReadinessRoute = (
  engine: ReadyEngine,
  { store, disk, instances, isJournalLost }: ProbeDeps,
) =>
  new Hono<ControlEnv>().get(
    '/readyz',
    describeRoute({
      id: 'getReadiness',
      tag: 'System',
      summary:
        'Check that this node accepts calls. Returns 503 during startup, while draining, ' +
        'while storage fails, and when another process has its name.',
      answer: data(
        z.strictObject({
          status: z.literal('ready'),
          database: z
            .enum(['available', 'unavailable'])
            .describe('`unavailable`: calls go on without the server of the database for a while.'),
          settings: z
            .enum(['same', 'different'])
            .describe('Of the nodes that live, where they must be the same.'),
          journal: z
            .enum(['whole', 'lost'])
            .describe(
              '`lost`: the journal of the last run was missing, empty or overwritten at the ' +
                'start; calls that were open then may have no record.',
            ),
        }),
        { status: 'ready', database: 'available', settings: 'same', journal: 'whole' },
      ),
      refusals: [503],
    }),
    openToAll(),
    (c) => {
      if (engine.isDraining())
        throw new ApiError(503, 'draining', 'New calls are not accepted: the process is draining')
      if (!engine.isReady()) throw new ApiError(503, 'not_ready', 'SIP is not ready yet')
      if (instances.condition === 'fenced')
        throw new ApiError(
          503,
          'node_fenced',
          'Another process has taken over the name of this node',
        )
      if (instances.condition === 'unheard')
        throw new ApiError(503, 'node_unheard', 'The database server does not answer this node')
      // Calls go on without the server until then.
      const problem = disk?.problem ?? store.storage.problem
      if (problem && problem.code !== 'server_unavailable') throw storageUnavailable(problem.reason)
      const settings = instances.differingSettings.size > 0 ? 'different' : 'same'
      return ok(c, {
        status: 'ready',
        database: problem ? 'unavailable' : 'available',
        settings,
        journal: isJournalLost === true ? 'lost' : 'whole',
      })
    },
  )

/** `GET /api/v1/health`: success for a valid key. Mounted under `/api/v1`. */
export const keyHealthRoute = (version: string) =>
  new Hono<ControlEnv>().get(
    '/health',
    describeRoute({
      id: 'getHealth',
      tag: 'System',
      summary: 'Verify the presented credential',
      answer: data(health, exampleHealth),
    }),
    requiresCredential(),
    (c) => ok(c, { status: 'ok', service: SERVICE, version }),
  )

/**
 * `GET /settings`: the settings of the process, without secrets. Only the platform may read them.
 */
export const settingsRoutes = ({ inForce }: Pick<Platform, 'inForce'>) =>
  new Hono<ControlEnv>().get(
    '/settings',
    describeRoute({
      id: 'listSettings',
      tag: 'System',
      summary: 'List the settings in force, without secrets',
      answer: data(settingsView, {
        settings: [
          {
            name: 'DRAIN_SECONDS',
            value: '30',
            source: 'default',
            allowed: 'a whole number from 0 to 3600 (s)',
            is_set: true,
            is_secret: false,
            meaning: 'how long live calls may go on after SIGTERM',
            when_unset: '30',
          },
        ],
        notes: [],
      }),
    }),
    requiresGlobal('settings:view'),
    (c) => ok(c, { settings: (inForce?.settings ?? []).map(viewOf), notes: inForce?.notes ?? [] }),
  )

const viewOf = ({ name, value, source, allowed, meaning, ...rest }: SettingInForce) => ({
  name,
  value,
  source,
  allowed,
  meaning,
  is_set: rest.isSet,
  is_secret: rest.isSecret,
  when_unset: rest.whenUnset,
})

export type SettingView = ReturnType<typeof viewOf>
