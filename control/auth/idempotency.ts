/**
 * `Idempotency-Key` as Stripe implements it (SPECIFICATION.md §8): the first response is stored for
 * 24 hours and returned again; the same key with another body is a conflict; a repetition that
 * arrives while the first request is running waits for it. A secret that is shown once, such as a
 * new token, is cut out of the response before it is stored, and the repeated response says so. The
 * stored response is encrypted with secrets that only its caller can present again: the
 * `Idempotency-Key` and, for a machine, its own token. The database contains neither.
 */
import { DAY_MS } from '../../schema/clock.ts'
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { type InstanceIdentity, RUN_MARK_BYTES, runMark } from '../../schema/contracts/instances.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, first, lockedTransaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { readCredential } from './authenticate.ts'
import { ApiError, badRequest, conflict } from '../http/api-error.ts'
import { readBody } from '../http/body.ts'
import {
  type ControlEnv,
  type RepeatableOptions,
  type Repetitions,
  requestHeader,
  type Step,
} from '../http/control-env.ts'
import { describeHandler } from '../http/validate.ts'
import { IdempotentClaims, type RequestIdentity, identityColumns } from './idempotent-claims.ts'

const RETENTION_MS = DAY_MS
const MAX_UNSTORED = 1_000
const keyForm = /^[\x21-\x7e]{1,255}$/
/** The stored headers of a response. */
const storedHeaders = ['Content-Type', 'Location', 'Cache-Control', 'X-Change-Id']

interface Operation {
  readonly identity: RequestIdentity
  readonly shownOnce: RepeatableOptions['shownOnce']
  readonly requestHash: Buffer
  /** The secret from which the encryption key is derived. */
  readonly secret: string
}

interface StoredAnswer {
  readonly request_hash: Buffer
  readonly status: number
  readonly sealed: Buffer
}

const answerForm = z.strictObject({ headers: z.record(z.string(), z.string()), body: z.string() })
type Answer = z.output<typeof answerForm>

/** The result of a request. */
interface Result {
  /** Undefined: a server error, or too many requests. */
  readonly answer: StoredAnswer | undefined
  readonly store: () => Promise<void>
}

interface RunningRequest {
  readonly requestHash: Buffer
  readonly ended: Promise<void>
}

/**
 * Honours `Idempotency-Key`. Runs after `requires` and `validate`, before the handler: a request
 * rejected by those was not carried out and may be repeated with the same key.
 */
export function repeatable(options: RepeatableOptions = {}): MiddlewareHandler<ControlEnv> {
  const repeat: MiddlewareHandler<ControlEnv> = (c, next) =>
    requestHeader(c, 'idempotency-key') === undefined
      ? next()
      : c.get('repetitions').repeat(c, next, options)
  describeHandler(repeat, { isRepeatable: true })
  return repeat
}

export class Idempotency implements Repetitions {
  readonly #store: Store
  readonly #now: () => number
  readonly #randomBytes: (size: number) => Buffer
  readonly #runOfInstance: InstanceIdentity
  /** Undefined: no other process serves from this database. */
  readonly #claims: IdempotentClaims | undefined
  /** Running requests; no more than the server has connections. */
  readonly #running = new Map<string, RunningRequest>()
  /** Responses that could not be stored. */
  readonly #unstored = new Map<string, Result>()

  constructor(
    store: Store,
    now: () => number,
    randomBytes: (size: number) => Buffer,
    run: InstanceIdentity,
  ) {
    this.#store = store
    this.#runOfInstance = run
    this.#now = now
    this.#randomBytes = randomBytes
    this.#claims = store.statements.isShared ? new IdempotentClaims(store, now) : undefined
  }

  /** Gives routes that are `repeatable` the way to be so. */
  offer(): Step {
    return (c) => c.set('repetitions', this)
  }

  async repeat(
    c: Context<ControlEnv>,
    next: () => Promise<void>,
    { operation: sharedName, shownOnce }: RepeatableOptions,
  ): Promise<Response | void> {
    const key = requestHeader(c, 'idempotency-key')
    if (key === undefined) return next()
    if (!keyForm.test(key))
      throw badRequest('Idempotency-Key must be 1 to 255 visible ASCII characters')
    const operation = {
      ...(await describeOperation(c, key, sharedName ?? `${c.req.method} ${c.req.path}`)),
      shownOnce,
    }
    const name = nameOf(operation.identity)
    // No `await` between the last check for running requests and the start of this one.
    for (let running = this.#running.get(name); running; running = this.#running.get(name)) {
      refuseOther(running.requestHash, operation)
      await running.ended
    }
    return this.#run(c, next, name, operation)
  }

  async #run(
    c: Context<ControlEnv>,
    next: () => Promise<void>,
    name: string,
    operation: Operation,
  ): Promise<Response | void> {
    const work = this.#answer(c, next, name, operation)
    // Waiting requests need only the end, not the result.
    const ended = work.then(nothing, nothing)
    this.#running.set(name, { requestHash: operation.requestHash, ended })
    try {
      return await work
    } finally {
      this.#running.delete(name)
    }
  }

  /** The stored answer, or else the answer of the handler. */
  async #answer(
    c: Context<ControlEnv>,
    next: () => Promise<void>,
    name: string,
    operation: Operation,
  ): Promise<Response | void> {
    const stored = await this.#storedAnswer(name, operation)
    if (stored !== undefined) return replay(c, stored, operation)
    const claims = this.#claims
    if (claims === undefined) return this.#carryOut(c, next, operation)
    const { identity, requestHash } = operation
    const claim = { ...identity, request_hash: requestHash, claim: this.#newClaim() }
    const other = await claims.take(claim)
    if (other !== undefined) {
      refuseOther(other, operation)
      throw inProgress()
    }
    // Another instance may have stored it before the claim.
    const storedByOther = await this.#storedAnswer(name, operation)
    if (storedByOther === undefined)
      return this.#carryOut(c, next, operation, () => claims.end(claim))
    await claims.end(claim)
    return replay(c, storedByOther, operation)
  }

  /**
   * The claim carries the mark of this run: the next run on this disk knows that it is abandoned.
   */
  #newClaim(): Buffer {
    return Buffer.concat([runMark(this.#runOfInstance), this.#randomBytes(16 - RUN_MARK_BYTES)])
  }

  async #storedAnswer(name: string, { identity }: Operation): Promise<StoredAnswer | undefined> {
    const query = this.#store.db
      .selectFrom('idempotent_answer')
      .select(['request_hash', 'status', 'sealed'])
      .where((row) => row.and({ ...identity }))
      .where('created_at', '>', this.#now() - RETENTION_MS)
    return this.#unstored.get(name)?.answer ?? (await first(this.#store, query))
  }

  /** @param end ends the claim, in the transaction that stores the answer. */
  async #carryOut(
    c: Context<ControlEnv>,
    next: () => Promise<void>,
    operation: Operation,
    end: () => Promise<void> = nothing,
  ): Promise<void> {
    await next()
    if (c.res.status < 500 && c.res.status !== 429) return this.#keep(c.res, operation, end)
    // A server error and a limit may not repeat: the client must be able to retry.
    await this.#storeNowOrLater(nameOf(operation.identity), { answer: undefined, store: end })
  }

  /** Stores what could not be stored when it was answered; called periodically. */
  async flush(): Promise<void> {
    for (const [name, { store }] of this.#unstored) {
      await store()
      this.#unstored.delete(name)
    }
  }

  async #keep(
    response: Response,
    { identity, requestHash, secret, shownOnce }: Operation,
    end: () => Promise<void>,
  ): Promise<void> {
    const now = this.#now()
    const { db } = this.#store
    const body = await response.clone().text()
    const answer: Answer = {
      headers: Object.fromEntries(
        storedHeaders.flatMap((name) => {
          const value = response.headers.get(name)
          return value === null ? [] : [[name, value]]
        }),
      ),
      body: shownOnce === undefined ? body : withoutField(body, shownOnce),
    }
    const row = {
      ...identity,
      request_hash: requestHash,
      status: response.status,
      sealed: seal(JSON.stringify(answer), secret, this.#randomBytes(12)),
      created_at: now,
    }
    const outdated = db
      .deleteFrom('idempotent_answer')
      .where('created_at', '<=', now - RETENTION_MS)
    const answered = db
      .insertInto('idempotent_answer')
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(identityColumns).doUpdateSet((row) => ({
          request_hash: row.ref('excluded.request_hash'),
          status: row.ref('excluded.status'),
          sealed: row.ref('excluded.sealed'),
          created_at: row.ref('excluded.created_at'),
        })),
      )
    const store = () =>
      lockedTransaction(this.#store, async () => {
        await execute(this.#store, outdated)
        await execute(this.#store, answered)
        await this.#claims?.sweep()
        await end()
      })
    await this.#storeNowOrLater(nameOf(identity), { answer: row, store })
  }

  /** The request is done and must not be done twice because the disk is full now. */
  async #storeNowOrLater(name: string, result: Result): Promise<void> {
    try {
      await result.store()
    } catch (error) {
      if (!isUnstored(error)) throw error
      this.#unstored.set(name, result)
      const [oldest] = this.#unstored.keys()
      if (this.#unstored.size > MAX_UNSTORED && oldest !== undefined) this.#unstored.delete(oldest)
    }
  }
}

const enveloped = z.looseObject({ data: z.looseObject({}) })

/** The response as it is repeated. One without the field, such as a refusal, stays as it is. */
function withoutField(body: string, name: 'token' | 'secret'): string {
  const answer = enveloped.safeParse(JSON.parse(body)).data
  if (answer?.data[name] === undefined) return body
  const { [name]: _, ...rest } = answer.data
  const data = { ...rest, [`${name}_omitted`]: omitted[name] }
  return JSON.stringify({ ...answer, data })
}

const omitted = {
  token:
    'The token was in the first answer to this Idempotency-Key only, and is not stored. ' +
    'Rotate the key for a new one',
  secret:
    'The secret was in the first answer to this Idempotency-Key only, and is not stored ' +
    'with it. Rotate it for a new one',
} as const

const nothing = (): Promise<void> => Promise.resolve()

const inProgress = (): ApiError =>
  new ApiError(
    409,
    'idempotency_in_progress',
    'A request with this Idempotency-Key is in progress on another node',
    { headers: { 'Retry-After': '1' } },
  )

async function describeOperation(
  c: Context<ControlEnv>,
  key: string,
  operation: string,
): Promise<Omit<Operation, 'shownOnce'>> {
  const body = await readBody(c)
  const credential = readCredential(
    requestHeader(c, 'authorization'),
    requestHeader(c, 'x-api-key'),
  )
  // A session token changes at every login; the response must remain readable.
  const token = credential?.kind === 'key' ? credential.token : ''
  const { actor, tenantId } = c.get('principal')
  return {
    identity: {
      actor: `${actor}@${tenantId ?? '*'}`,
      operation,
      key_hash: sha256(key),
    },
    requestHash: sha256(body),
    secret: `${key}\0${token}`,
  }
}

function replay(c: Context<ControlEnv>, stored: StoredAnswer, operation: Operation): Response {
  refuseOther(stored.request_hash, operation)
  const opened = open(stored.sealed, operation.secret)
  if (opened === undefined)
    throw conflict(
      'idempotency_answer_sealed',
      'The request was carried out, but its response was not stored, or only the token ' +
        'that made the request may read it',
    )
  c.set('isReplayed', true)
  const headers = { ...opened.headers, 'Idempotency-Replayed': 'true' }
  return new Response(opened.body, { status: stored.status, headers })
}

function refuseOther(requestHash: Buffer, operation: Operation): void {
  if (!requestHash.equals(operation.requestHash))
    throw conflict('idempotency_conflict', 'This Idempotency-Key was used with another body')
}

const nameOf = ({ actor, operation, key_hash: keyHash }: RequestIdentity): string =>
  `${actor} ${operation} ${keyHash.toString('base64')}`

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()

const sealingKey = (secret: string, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, 'tollgate idempotent answer', 32))

/** AES-256-GCM: 12 bytes nonce (the salt of its key too), 16 bytes tag, ciphertext. */
function seal(text: string, secret: string, nonce: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', sealingKey(secret, nonce), nonce)
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

function open(sealed: Buffer, secret: string): Answer | undefined {
  const nonce = sealed.subarray(0, 12)
  const decipher = createDecipheriv('aes-256-gcm', sealingKey(secret, nonce), nonce)
  decipher.setAuthTag(sealed.subarray(12, 28))
  try {
    const text = Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()])
    return answerForm.parse(JSON.parse(text.toString('utf8')))
  } catch {
    return undefined
  }
}
