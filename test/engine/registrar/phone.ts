/** Registrars on a database, in virtual time, and phones that register at them. */
import { hash } from 'node:crypto'
import {
  type PhoneAnswer,
  type RegistrarDeps,
  Registrar,
} from '../../../engine/registrar/registrar.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute, insert } from '../../../schema/sql/query.ts'
import { localDatabase } from '../../support/shared-database.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { openTestStore } from '../../support/test-store.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'
import { digestSecrets } from '../../../control/resources/extensions.ts'

const startedAt = Date.UTC(2026, 0, 1)

/** Tenant `acme` with extensions 101 and 102, password `secret-<number>`. */
export async function withExtensions<S extends Store>(store: S): Promise<S> {
  const { db } = store
  const acme = { slug: 'acme', name: 'Acme', created_at: 0 }
  const tenantId = await insert(store, db.insertInto('tenant').values(acme).returning('id'))
  const domain = { domain: 'acme.example', tenant_id: tenantId }
  await execute(store, db.insertInto('tenant_domain').values(domain))
  for (const extension of ['101', '102']) await addExtension(store, tenantId, extension)
  return store
}

function addExtension(store: Store, tenantId: number, extension: string): Promise<number> {
  const { md5, sha256 } = digestSecrets(extension, 'acme.example', `secret-${extension}`)
  return insert(
    store,
    store.db
      .insertInto('extension')
      .values({
        tenant_id: tenantId,
        domain: 'acme.example',
        extension,
        display_name: extension,
        ha1_md5: md5,
        ha1_sha256: sha256,
        created_at: 0,
        updated_at: 0,
      })
      .returning('id'),
  )
}

export interface WorldOptions {
  /** A store with its extensions; absent: a new one, SQLite in memory. */
  readonly store?: Store
  readonly node?: string
  readonly notices?: RegistrarDeps['notices']
  readonly hop?: RegistrarDeps['hop']
  readonly hooks?: RegistrarDeps['hooks']
  readonly time?: ManualTime
  readonly keepsLost?: RegistrarDeps['keepsLost']
}

const emptyDatabase = async (): Promise<Store> =>
  isOnPostgres ? openTestStore(0) : localDatabase()

export async function startRegistrar({
  store: given,
  node = 'one',
  notices,
  hop,
  hooks,
  time = new ManualTime(startedAt),
  keepsLost,
}: WorldOptions = {}) {
  const store = given ?? (await withExtensions(await emptyDatabase()))
  const keptAlive: string[] = []
  const failed: string[] = []
  /** Who has shown a password, from where. */
  const proven: string[] = []
  /** Who was said to have other phones than before. */
  const told: Parameters<RegistrarDeps['onRegistration']>[0][] = []
  /** The wrong passwords that are counted. */
  const wrong: Parameters<RegistrarDeps['onWrongPassword']>[0][] = []
  const logged: string[] = []
  const lockedOut = new Set<string>()
  /** Proxies of any Path. */
  const proxies = new Set<string>()
  const deps: RegistrarDeps = {
    store,
    instance: node,
    notices,
    hop,
    hooks,
    keepsLost,
    now: time.now,
    wallNow: time.wallNow,
    schedule: time.schedule,
    secret: Buffer.alloc(32, 7),
    nonceSeconds: 300,
    keepAlive: ({ uri, nextHop }) => void keptAlive.push(`${uri} via ${nextHop ?? '-'}`),
    guard: {
      isLockedOut: ({ address }, user) => lockedOut.has(`${address} ${user}`),
      authFailed: ({ address }, user) => void failed.push(`${address} ${user}`),
      unknownDomain: () => undefined,
      authSucceeded: ({ address, port }, user) => void proven.push(`${address}:${port} ${user}`),
    },
    onWrongPassword: (failure) => void wrong.push(failure),
    isProxy: ({ address }, tenantId) =>
      proxies.has(address) || proxies.has(`${address} ${tenantId}`),
    onRegistration: (change) => void told.push(change),
    log: (_, message, fields) => void logged.push(`${message} ${String(fields?.['error'])}`),
  }
  const registrar = await loaded(deps)
  /** Asks; what has to be stored is committed on the way. */
  const ask = async (request: Parameters<Registrar['handle']>[0]): Promise<PhoneAnswer> => {
    const answer = registrar.handle(request)
    await Promise.resolve()
    time.advance(50)
    return answer
  }
  return {
    store,
    time,
    registrar,
    ask,
    keptAlive,
    failed,
    proven,
    told,
    logged,
    wrong,
    lockedOut,
    proxies,
    deps,
  }
}

/** Follows a change from outside; bindings that end by it are ended in the database, too. */
export const reloaded = ({ registrar }: Pick<World, 'registrar'>): Promise<void> =>
  whileWriting(registrar, registrar.reload())

/** Waiting rows are written until this is done; no time passes. */
export async function whileWriting<T>(registrar: Registrar, done: Promise<T>): Promise<T> {
  const state = { isOver: false }
  const over = done.finally(() => {
    state.isOver = true
  })
  while (!state.isOver) {
    await registrar.flush()
    await turnOfEventLoop()
  }
  return over
}

/** One that has read what is stored, as after a start. */
export async function loaded(deps: RegistrarDeps): Promise<Registrar> {
  const registrar = new Registrar(deps)
  await registrar.load()
  return registrar
}

export type World = Awaited<ReturnType<typeof startRegistrar>>

export interface PhoneOptions {
  readonly user?: string
  readonly password?: string
  readonly algorithm?: 'MD5' | 'SHA-256'
  readonly address?: string
  readonly port?: number
  readonly protocol?: string
  readonly callId?: string
  readonly userAgent?: string
}

/** A phone as another program would write it: it shares no code with the registrar. */
export class Phone {
  readonly #world: World
  readonly user: string
  readonly #password: string
  readonly #algorithm: 'MD5' | 'SHA-256'
  readonly #callId: string
  readonly #userAgent: string
  readonly source: { readonly protocol: string; readonly address: string; readonly port: number }
  cseq = 0
  nc = 0
  nonce = ''

  constructor(world: World, options: PhoneOptions = {}) {
    this.#world = world
    this.user = options.user ?? '101'
    this.#password = options.password ?? `secret-${this.user}`
    this.#algorithm = options.algorithm ?? 'MD5'
    this.#callId = options.callId ?? `call-${Math.floor(lastPhone++)}`
    this.#userAgent = options.userAgent ?? 'Test Phone 1'
    const { protocol = 'udp', address = '203.0.113.7', port = 5_060 } = options
    this.source = { protocol, address, port }
  }

  get contact(): string {
    return `<sip:${this.user}@${this.source.address}:${this.source.port}>`
  }

  headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    this.cseq += 1
    return {
      from: `<sip:${this.user}@acme.example>;tag=1`,
      to: `<sip:${this.user}@acme.example>`,
      'call-id': this.#callId,
      cseq: `${this.cseq} REGISTER`,
      'user-agent': this.#userAgent,
      ...more,
    }
  }

  send(headers: Readonly<Record<string, string>>): Promise<PhoneAnswer> {
    const method = 'REGISTER'
    return this.#world.ask({ method, headers: this.headers(headers), source: this.source })
  }

  /** Asks for a challenge and takes its nonce. */
  async challenged(headers: Readonly<Record<string, string>> = {}): Promise<PhoneAnswer> {
    const answer = await this.send(headers)
    this.learn(answer)
    return answer
  }

  learn(answer: PhoneAnswer): void {
    const challenge = challengesOf(answer).find((value) =>
      value.includes(`algorithm=${this.#algorithm}`),
    )
    this.nonce = /nonce="([^"]+)"/.exec(challenge ?? '')?.[1] ?? ''
    this.nc = 0
  }

  /** The credentials for the next request, as RFC 7616 §3.4 computes them. */
  credentials(method = 'REGISTER', uri = 'sip:acme.example'): string {
    this.nc += 1
    const nc = this.nc.toString(16).padStart(8, '0')
    const digest = (text: string): string =>
      hash(this.#algorithm === 'MD5' ? 'md5' : 'sha256', text, 'hex')
    const ha1 = digest(`${this.user}:acme.example:${this.#password}`)
    const ha2 = digest(`${method}:${uri}`)
    const response = digest(`${ha1}:${this.nonce}:${nc}:c0ffee:auth:${ha2}`)
    return (
      `Digest username="${this.user}", realm="acme.example", nonce="${this.nonce}", uri="${uri}", ` +
      `response="${response}", algorithm=${this.#algorithm}, cnonce="c0ffee", qop=auth, nc=${nc}`
    )
  }

  /** Answers the last challenge, or asks for one. */
  async register(more: Readonly<Record<string, string>> = {}): Promise<PhoneAnswer> {
    if (this.nonce === '') await this.challenged()
    return this.send({ contact: this.contact, ...more, authorization: this.credentials() })
  }
}

let lastPhone = 0

/** User-Agent of a phone that is known to read several challenges. */
export const readsSeveral = 'Linphonec/5.1.65'

export const challengesOf = ({ headers }: PhoneAnswer): readonly string[] => {
  const value = headers['WWW-Authenticate'] ?? headers['Proxy-Authenticate'] ?? []
  return typeof value === 'string' ? [value] : value
}
