/**
 * The other instances of an installation, from the list that heartbeats update; and `GET /nodes`.
 */
import { Hono } from 'hono'
import { timeToText } from '../../schema/columns.ts'
import type { InstancesPort, InstanceStatus } from '../../schema/contracts/instances.ts'
import { requiresGlobal } from '../auth/requires.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'
import { data } from '../http/operation.ts'
import { describeRoute } from '../http/validate.ts'
import { z } from 'zod'

const instanceView = z
  .strictObject({
    name: z.string(),
    epoch: count.describe('Grows with each start; 0 with SQLite.'),
    address: z.string().describe('Of its API, for the other nodes.'),
    version: z.string(),
    state: z
      .enum(['starting', 'serving', 'draining', 'stopped', 'lost'])
      .describe('`lost`: not heard for ten seconds.'),
    live_calls: count,
    started_at: moment,
    heartbeat_at: moment.describe('By the clock of the database server.'),
    is_this: z.boolean().describe('The process that answers.'),
    clock_difference_seconds: z
      .number()
      .describe('How far its clock is ahead of the database server; 0 within two seconds.'),
    differing_settings: z
      .array(z.string())
      .describe(
        'Settings that must be the same on all nodes, and in which this one differs from ' +
          'another that lives.',
      ),
  })
  .meta({ id: 'ProcessNode' })

/**
 * An instance that is lost for longer is not named any more: the calls of its last run are over, or
 * with a new one.
 */
const NAMED_MS = 3_600_000

/** @param key of `Secrets.keyFor(INSTANCE_KEY)`. */
export const membershipOf = (
  instances: Pick<InstancesPort, 'identity' | 'list'>,
  key: Buffer,
  now: () => number,
): Membership => ({
  self: instances.identity.name,
  key,
  peers: () => instances.list().flatMap((instance) => peerOf(instance, now())),
})

/** The name of the key with which instances recognize each other. */
export const INSTANCE_KEY = 'node requests'

function peerOf(instance: InstanceStatus, now: number): readonly Peer[] {
  const { name, address: apiUrl, state, heartbeatAt, isThis } = instance
  if (isThis || state === 'stopped' || !isUrl(apiUrl)) return []
  if (state === 'lost' && now - heartbeatAt > NAMED_MS) return []
  return [{ name, apiUrl, isAlive: state === 'serving' || state === 'draining' }]
}

const isUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

/** Another instance of the installation. */
export interface Peer {
  /** `NODE_NAME`: letters, digits, `.`, `_` and `-`. */
  readonly name: string
  /** The URL of its API for other instances: scheme, host and port. */
  readonly apiUrl: string
  /** The heartbeat is recent; other instances are not asked. */
  readonly isAlive: boolean
}

/** Dependencies of requests to other instances. */
export interface Membership {
  /** The name of this instance. */
  readonly self: string
  /**
   * 32 bytes that all instances of the installation derive from `SECRET_KEY`, and nothing else has.
   */
  readonly key: Buffer
  /**
   * All instances but this one. From memory: it is read for each request that concerns other
   * instances.
   */
  readonly peers: () => readonly Peer[]
}

/** `GET /nodes`: the processes of this installation. Of the platform alone. */
export const instanceRoutes = ({ instances }: Pick<Platform, 'instances'>) =>
  new Hono<ControlEnv>().get(
    '/nodes',
    describeRoute({
      id: 'listNodes',
      tag: 'System',
      summary: 'List the processes of this installation; with SQLite there is one.',
      answer: data(z.array(instanceView), [
        {
          name: 'sbc-1',
          epoch: 3,
          address: 'http://10.0.0.1:8080',
          version: '0.1.0',
          state: 'serving',
          live_calls: 12,
          started_at: exampleTime,
          heartbeat_at: exampleTime,
          is_this: true,
          clock_difference_seconds: 0,
          differing_settings: [],
        },
      ]),
    }),
    requiresGlobal('metrics:read'),
    (c) =>
      ok(
        c,
        instances.list().map((instance) => ({
          ...viewOf(instance),
          differing_settings: instances.differingSettings.get(instance.name) ?? [],
        })),
      ),
  )

export type InstanceView = ReturnType<typeof viewOf> & {
  readonly differing_settings: readonly string[]
}

const viewOf = ({ name, epoch, address, version, state, ...instance }: InstanceStatus) => ({
  name,
  epoch,
  address,
  version,
  state,
  live_calls: instance.liveCalls,
  started_at: timeToText(instance.startedAt),
  heartbeat_at: timeToText(instance.heartbeatAt),
  is_this: instance.isThis,
  clock_difference_seconds: clockSecondsOf(instance),
})

/** How far the clock of an instance is ahead of the database server, as it is shown. */
export const clockSecondsOf = ({ clockDifferenceMs }: Pick<InstanceStatus, 'clockDifferenceMs'>) =>
  Math.round(clockDifferenceMs / 100) / 10
