/** Questions between instances, without a caller. Clients cannot ask them. */
import { z } from 'zod'
import { capScopes } from '../../schema/contracts/limits.ts'

/** Questions are answered below this path, in front of every route. */
export const QUESTIONS_PATH = '/api/v1/nodes/question'
/** 200 sets of one page have no more nodes. */
const MAX_COUNTED = 100_000

export const question = z.discriminatedUnion('kind', [
  /** 200: the call is live there. */
  z.strictObject({ kind: z.literal('locate'), callUuid: z.string().max(200) }),
  /** The call as tools show it, where it is live there and of this tenant; null: of any. */
  z.strictObject({
    kind: z.literal('live_call'),
    callUuid: z.string().max(200),
    tenantId: z.int().nullable(),
  }),
  /** Ends it. The instance that asks has admitted who wants that, and enters the change. */
  z.strictObject({
    kind: z.literal('hang_up'),
    callUuid: z.string().max(200),
    tenantId: z.int().nullable(),
    /** Q.850. */
    cause: z.int().min(1).max(127),
  }),
  /** How many live calls these have there. */
  z.strictObject({
    kind: z.literal('counts'),
    of: z.enum(['nodes', 'carriers', 'agents']),
    ids: z.array(z.int()).max(MAX_COUNTED),
  }),
  /** How many live calls a spend guard covers there. */
  z.strictObject({
    kind: z.literal('guarded'),
    scope: z.enum(capScopes),
    scopeId: z.int(),
    prefix: z.string().max(40),
    extension: z.strictObject({ number: z.string().max(100), tenantId: z.int() }).nullable(),
  }),
  /** The stored events after this id. */
  z.strictObject({
    kind: z.literal('events'),
    tenantId: z.int().nullable(),
    after: z.string().max(60).optional(),
  }),
  /** All events from this id on, as they happen. */
  z.strictObject({ kind: z.literal('follow'), after: z.string().max(60).optional() }),
])

export type Question = z.output<typeof question>

export const cappedAnswer = z.object({ calls: z.int().min(0) })

/** The counts are keyed by id. */
export const countsAnswer = z.record(z.string(), z.int().min(0))
export type Counts = z.output<typeof countsAnswer>
