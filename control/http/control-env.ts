/**
 * The context of requests to this API: its types, and the headers of Node's request and response.
 */
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { ApiAnswer } from './api-answer.ts'
import type { RequestProblem } from './api-error.ts'
import type { WorkBudget } from './work-budget.ts'

export interface ControlEnv {
  /** Every request passes `http-server.ts`, which makes this response. */
  Bindings: Pick<HttpBindings, 'incoming'> & { readonly outgoing: ApiAnswer }
  /** Read with `c.get(name)` on the hot path: `c.var` copies the whole map on each use. */
  Variables: {
    /** Echoed or generated; `request_id` of the error envelope. */
    correlationId: string
    /** Address of the peer, or as a trusted proxy reports it; IPv4-mapped addresses as IPv4. */
    clientAddress: string
    /** Budget of the asker; undefined: it is not bounded. */
    budget: WorkBudget | undefined
    /** Set by a successful login, for the audit trail. */
    loginActor: string
    /** Set by the error handler, for the audit trail. */
    refusal: { readonly code: string; readonly details: readonly RequestProblem[] | undefined }
    /** Set by routes that know what they changed, for the audit trail. */
    change: Change
    /** Set instead when another instance has changed it: the digests of both. */
    changeDigests: ChangeDigests
    /** Carries out a request with an `Idempotency-Key` once. */
    repetitions: Repetitions
    /** Set when the stored answer to an `Idempotency-Key` was given again: nothing was done. */
    isReplayed: boolean
    /**
     * Set by routes that write their own audit entries, and for requests of other instances, which
     * write them.
     */
    isAudited: boolean
    /**
     * Set when another instance of the installation makes the request, for a client or for itself.
     */
    instanceRequest: InstanceRequest
    /** Set when instances that should have been asked have not answered. */
    isPartial: boolean
  }
}

/**
 * A step that runs for every request before its route. It throws or rejects to refuse the request.
 */
export type Step = (c: Context<ControlEnv>) => void | Promise<void>

/**
 * Uses a value at once, or when it is there: most requests are known from memory, and need not
 * wait.
 */
export function whenKnown<T>(value: T | Promise<T>, use: (value: T) => void): void | Promise<void> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** Repeats stored answers; `auth/idempotency.ts` implements it. */
export interface Repetitions {
  repeat(
    c: Context<ControlEnv>,
    next: () => Promise<void>,
    options: RepeatableOptions,
  ): Promise<Response | void>
}

export interface RepeatableOptions {
  /** Names what several paths do; absent: each path is its own operation. */
  readonly operation?: string
  /** The field of the answer that only the first response has. */
  readonly shownOnce?: 'token' | 'secret'
}

/** A row before and after a request, as the API shows it; null when it did not exist. */
export interface Change {
  readonly before: unknown
  readonly after: unknown
  /** Id of its entry in `control/changes`, which can be undone. */
  readonly changeId?: string | null
  readonly reason?: string | null
  /** A sentence about a deed that has no entry in `control/changes`. */
  readonly effect?: string
}

export interface ChangeDigests {
  readonly before: string | null
  readonly after: string | null
  /** Id of its entry in `control/changes`. */
  readonly changeId: string | null
}

/** A request that another instance of the installation makes. */
interface InstanceRequest {
  /** The instance. */
  readonly from: string
  /** The client's address, as that instance knows it. */
  readonly address: string
  /** Asked by the instance itself; undefined: the request of a client. */
  readonly question: unknown
}

/**
 * These read and set headers on Node's request and response: they are parsed already, and a header
 * set with `c.header()` forces Hono to build a whole Response.
 */
export function requestHeader(c: Context<ControlEnv>, name: Lowercase<string>): string | undefined {
  const value = c.env.incoming.headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Call it before the handler; afterwards a header would force a whole Response to be built. */
export function setAnswerHeader(c: Context<ControlEnv>, name: string, value: string): void {
  answerOf(c).setEarly(name, value)
}

/** The address of the socket's peer; empty once the connection is closed. */
export const peerAddress = (c: Context<ControlEnv>): string =>
  c.env.incoming.socket.remoteAddress ?? ''

export const answerOf = (c: Context<ControlEnv>): ApiAnswer => c.env.outgoing
