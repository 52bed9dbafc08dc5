/**
 * The keys that sign our calls. Of an owner's keys the newest one signs whose time has begun, so
 * that a key and its successor may overlap.
 */
import { createHash, type KeyObject, type X509Certificate } from 'node:crypto'
import type { StirKeyStatus } from '../../schema/contracts/stir.ts'
import { passportHeader } from '../../schema/stir/passport.ts'
import { pemOf, readCertificates, readPrivateKey, validityOf } from '../../schema/stir/pem.ts'
import { keyProblem } from '../../schema/stir/key-problem.ts'
import type { StirKeyRecord } from './stir-store.ts'

export interface SigningKey {
  readonly key: KeyObject
  readonly x5u: string
  /** Headers of the PASSporTs that it signs, in base64url. */
  readonly headers: { readonly shaken: string; readonly div: string }
}

interface Loaded {
  readonly record: StirKeyRecord
  /** Undefined: `why` says why it cannot sign. */
  readonly signing: SigningKey | undefined
  readonly why: string | null
  /** Whether its certificate is being waited for. */
  readonly isWaiting: boolean
  readonly x5u: string | null
  /** Milliseconds UTC. */
  readonly from: number
  readonly until: number
}

export interface SigningKeysDeps {
  /** The address at which the API is reached from outside; undefined: it is not. */
  readonly publicUrl: string | undefined
  /** The chain at a URL; a text says why there is none. */
  readonly chainAt: (url: string) => Promise<readonly X509Certificate[] | string>
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** A certificate has another name than its successor: verifiers keep what they have fetched. */
const PUBLISHED_PATH = '/stir/certificates'

/** A slow host of one tenant does not keep the keys of others waiting. */
const FETCHES_AT_ONCE = 8

export class SigningKeys {
  readonly #deps: SigningKeysDeps
  #all: ReadonlyMap<number, Loaded> = new Map()
  #ofOwners: ReadonlyMap<number | null, readonly Loaded[]> = new Map()
  #published: ReadonlyMap<string, string> = new Map()

  constructor(deps: SigningKeysDeps) {
    this.#deps = deps
  }

  /** Takes over what is stored; certificates that others publish come later. */
  load(records: readonly StirKeyRecord[]): void {
    const before = this.#all
    const loaded = records.map((record): Loaded => {
      const known = before.get(record.id)
      if (known !== undefined && isSame(known.record, record)) return known
      if (record.certificate !== null)
        return this.#loaded(record, readCertificates(record.certificate))
      return { ...notSigning(record, 'its certificate has not been fetched yet'), isWaiting: true }
    })
    this.#take(loaded)
    this.#published = new Map(
      records.flatMap(({ certificate }): [string, string][] => {
        const chain = certificate === null ? '' : readCertificates(certificate)
        return typeof chain === 'string' ? [] : [[publishedName(chain), pemOf(chain)]]
      }),
    )
  }

  /** Fetches what others publish, a few at once. Returns whether some could not be had. */
  async fetchMissing(): Promise<boolean> {
    const waiting = [...this.#all.values()].filter(({ isWaiting }) => isWaiting).values()
    let isMissing = false
    const work = async (): Promise<void> => {
      for (const { record } of waiting) if (await this.#isMissing(record)) isMissing = true
    }
    await Promise.all(Array.from({ length: FETCHES_AT_ONCE }, work))
    return isMissing
  }

  /** Fetches the certificate of a key. Returns whether it could not be had. */
  async #isMissing(record: StirKeyRecord): Promise<boolean> {
    if (record.x5u === null) return false
    const chain = await this.#deps.chainAt(record.x5u)
    // It may have been changed meanwhile.
    if (this.#all.get(record.id)?.record !== record) return false
    const loaded =
      typeof chain === 'string'
        ? { ...notSigning(record, `its certificate: ${chain}`), isWaiting: true }
        : this.#loaded(record, chain)
    this.#take([...this.#all.values()].map((each) => (each.record === record ? loaded : each)))
    return loaded.isWaiting
  }

  /** The key for calls of a tenant alone; null: those of the platform. */
  of(owner: number | null, now: number): SigningKey | undefined {
    return this.#signing(owner, now)?.signing
  }

  status(id: number): StirKeyStatus | undefined {
    const loaded = this.#all.get(id)
    if (loaded === undefined) return undefined
    const { record, x5u, why, until } = loaded
    const now = this.#deps.now()
    const shown = { x5u, why, until: Number.isFinite(until) ? until : null }
    if (!record.isActive) return { ...shown, state: 'off' }
    if (loaded.signing === undefined)
      return { ...shown, state: loaded.isWaiting ? 'waiting' : 'unusable' }
    if (now < loaded.from) return { ...shown, state: 'waiting' }
    if (now > until) return { ...shown, state: 'expired' }
    const isInUse = this.#signing(record.tenantId, now) === loaded
    return { ...shown, state: isInUse ? 'in_use' : 'usable' }
  }

  published(name: string): string | undefined {
    return this.#published.get(name)
  }

  /** The last moment of each key that is in use or will be, with its name. */
  ends(): readonly { readonly file: string; readonly notAfter: number }[] {
    const now = this.#deps.now()
    return [...this.#ofOwners.values()].flatMap((loaded) => {
      const last = loaded.reduce<Loaded | undefined>(
        (end, each) => (end === undefined || each.until > end.until ? each : end),
        undefined,
      )
      return last === undefined || now < last.from || last.signing === undefined
        ? []
        : [{ file: `STIR key ${last.record.name}`, notAfter: last.until }]
    })
  }

  #signing(owner: number | null, now: number): Loaded | undefined {
    return this.#ofOwners.get(owner)?.find(({ from, until }) => from <= now && now <= until)
  }

  #take(loaded: readonly Loaded[]): void {
    this.#all = new Map(loaded.map((each) => [each.record.id, each]))
    const usable = loaded
      .filter(({ record, signing }) => record.isActive && signing !== undefined)
      .toSorted((one, other) => other.from - one.from || other.record.id - one.record.id)
    const ofOwners = new Map<number | null, Loaded[]>()
    for (const each of usable) {
      const others = ofOwners.get(each.record.tenantId)
      if (others === undefined) ofOwners.set(each.record.tenantId, [each])
      else others.push(each)
    }
    this.#ofOwners = ofOwners
  }

  #loaded(record: StirKeyRecord, chain: readonly X509Certificate[] | string): Loaded {
    if (typeof chain === 'string') return notSigning(record, `its certificate ${chain}`)
    const [certificate] = chain
    const key = readPrivateKey(record.privateKey)
    if (certificate === undefined || typeof key === 'string')
      return notSigning(record, 'its private key cannot be read')
    const problem = keyProblem(key, certificate)
    if (problem !== undefined) return notSigning(record, `its certificate ${problem}`)
    const x5u = record.x5u ?? this.#publishedUrl(chain)
    if (x5u === undefined) return notSigning(record, 'it needs x5u, or PUBLIC_URL with https')
    const { from, until } = validityOf(certificate)
    const headers = { shaken: passportHeader('shaken', x5u), div: passportHeader('div', x5u) }
    return {
      record,
      signing: { key, x5u, headers },
      why: null,
      isWaiting: false,
      x5u,
      from: Math.max(from, record.validFrom ?? from),
      until: Math.min(until, record.validUntil ?? until),
    }
  }

  #publishedUrl(chain: readonly X509Certificate[]): string | undefined {
    const { publicUrl } = this.#deps
    if (publicUrl === undefined || !publicUrl.startsWith('https:')) return undefined
    return `${publicUrl.replace(/\/$/, '')}${PUBLISHED_PATH}/${publishedName(chain)}`
  }
}

const publishedName = (chain: readonly X509Certificate[]): string =>
  `${createHash('sha256').update(pemOf(chain)).digest('hex').slice(0, 32)}.pem`

const isSame = (one: StirKeyRecord, other: StirKeyRecord): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const notSigning = (record: StirKeyRecord, why: string): Loaded => ({
  record,
  signing: undefined,
  why,
  isWaiting: false,
  x5u: record.x5u,
  from: 0,
  until: record.validUntil ?? Infinity,
})
