/**
 * The certificates of signers: fetched, led to an authority, and kept. Good ones and failures are
 * kept apart, so that nobody who names bad URLs drives good certificates out.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import { hostOf, problemOfUrl, unusablePort } from '../../schema/net/http-target.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import { MAX_URL_LENGTH } from '../../schema/stir/identity-header.ts'
import { MAX_CHAIN_LENGTH, readCertificates, subjectOf } from '../../schema/stir/pem.ts'
import type { TnAuthList } from '../../schema/stir/tn-auth-list.ts'
import { boundedGet, type GetDeps, type Got } from './bounded-get.ts'
import type { CertificateFacts } from './certificate-facts.ts'
import { type Authority, type CertificatePath, pathOf, type PathStep } from './certificate-path.ts'
import { FetchesAtOnce } from './fetches-at-once.ts'
import { plainSerial, readRevocationList, type RevocationList } from './revocation-list.ts'

export interface SignerCertificate {
  readonly kind: 'good'
  readonly key: KeyObject
  /** Its subject, for people. */
  readonly signer: string
  readonly tnAuthList: TnAuthList | undefined
  /** Milliseconds UTC between which it, and all above it, are valid. */
  readonly from: number
  readonly until: number
}

export interface BadCertificate {
  readonly kind: 'bad'
  /** 436: it could not be fetched. 437: it cannot be accepted. */
  readonly status: 436 | 437
  readonly why: string
}

export type Looked = SignerCertificate | BadCertificate

export interface CertificatesDeps extends GetDeps {
  /** Hosts from which certificates are fetched; empty: from all. */
  readonly hosts: readonly string[]
  /** Milliseconds UTC. */
  readonly now: () => number
}

type Kept<T> = T & {
  /** Milliseconds UTC at which it is fetched again. */
  readonly keptUntil: number
}

const MAX_GOOD = 1_000
const MAX_BAD = 1_000
const MAX_LISTS = 100
const MAX_LIST_BYTES = 524_288
const GOOD_MS = 3_600_000
const LEAST_GOOD_MS = 60_000
const BAD_MS = 30_000

export class Certificates {
  readonly #deps: CertificatesDeps
  readonly #good = recentlyUsed<string, Kept<SignerCertificate>>(MAX_GOOD)
  readonly #bad = recentlyUsed<string, Kept<BadCertificate>>(MAX_BAD)
  readonly #lists = recentlyUsed<string, Kept<{ readonly list: RevocationList }>>(MAX_LISTS)
  readonly #fetches = new FetchesAtOnce<Looked>()
  readonly #listFetches = new FetchesAtOnce<RevocationList | string>()
  #authorities: readonly Authority[] = []
  #factsOf: ((certificate: X509Certificate) => CertificateFacts | string) | undefined
  /** Changes with the authorities: what was found by earlier ones is not kept. */
  #epoch = 0

  constructor(deps: CertificatesDeps) {
    this.#deps = deps
  }

  /** Returns the names of those that cannot be used, with the reason. */
  async trust(authorities: readonly X509Certificate[]): Promise<readonly string[]> {
    const factsOf = authorities.length === 0 ? undefined : await this.#reader()
    const read = authorities.map((certificate) => ({ certificate, facts: factsOf?.(certificate) }))
    this.#authorities = read.flatMap(({ certificate, facts }) =>
      typeof facts === 'object' ? [{ certificate, facts }] : [],
    )
    this.#epoch += 1
    this.#good.clear()
    this.#bad.clear()
    return read.flatMap(({ certificate, facts }) =>
      typeof facts === 'string' ? [`${subjectOf(certificate)}: ${facts}`] : [],
    )
  }

  /** The certificate at a URL, or the last failure; undefined: it has to be fetched. */
  known(url: string): Looked | undefined {
    const now = this.#deps.now()
    const found = this.#good.get(url) ?? this.#bad.get(url)
    return found !== undefined && now < found.keptUntil ? found : undefined
  }

  async fetch(url: string): Promise<Looked> {
    const problem = this.problemOf(url)
    if (problem !== undefined) return bad(436, `the URL of the certificate ${problem}`)
    const fetched = this.#fetches.join(new URL(url), () => this.#fetch(url))
    // Not kept: the next call may find room.
    return fetched ?? bad(436, 'too many certificates are being fetched')
  }

  /** Why a certificate is not fetched from there; undefined: it is. */
  problemOf(url: string): string | undefined {
    if (url.length > MAX_URL_LENGTH) return 'is too long'
    const { allowPrivate, hosts } = this.#deps
    const problem = problemOfUrl(url, allowPrivate) ?? unusablePort(url)
    if (problem !== undefined) return problem
    const parsed = new URL(url)
    // Plain HTTP is for tests, on networks of one's own.
    if (parsed.protocol !== 'https:' && !allowPrivate) return 'must be an https URL'
    if (hosts.length > 0 && !hosts.includes(hostOf(parsed)))
      return 'is of a host that is not listed'
    return undefined
  }

  /** The chain at a URL, whoever signed it; a text says why there is none. */
  async chainAt(url: string): Promise<readonly X509Certificate[] | string> {
    const problem = this.problemOf(url)
    return problem === undefined
      ? chainIn(await boundedGet(new URL(url), MAX_CHAIN_LENGTH, this.#deps))
      : `the URL ${problem}`
  }

  telemetry(): Readonly<Record<string, number>> {
    return {
      stir_certificates: this.#good.size,
      stir_certificate_failures: this.#bad.size,
      stir_certificate_fetches_total: this.#fetches.total + this.#listFetches.total,
      stir_certificate_fetches: this.#fetches.size + this.#listFetches.size,
    }
  }

  async #fetch(url: string): Promise<Looked> {
    const epoch = this.#epoch
    const got = await boundedGet(new URL(url), MAX_CHAIN_LENGTH, this.#deps)
    const chain = chainIn(got)
    const looked =
      typeof chain === 'string'
        ? bad(got.kind === 'failed' ? 436 : 437, `the certificate: ${chain}`)
        : await this.#judge(chain)
    if (epoch !== this.#epoch) return looked
    const now = this.#deps.now()
    if (looked.kind === 'bad') this.#bad.set(url, { ...looked, keptUntil: now + BAD_MS })
    else this.#good.set(url, { ...looked, keptUntil: now + goodFor(got) })
    return looked
  }

  async #judge(chain: readonly X509Certificate[]): Promise<Looked> {
    const now = this.#deps.now()
    const path = pathOf(chain, this.#authorities, await this.#reader(), now)
    const [first] = typeof path === 'string' ? [] : path.steps
    if (typeof path === 'string') return bad(437, `the certificate: ${path}`)
    if (first === undefined) return bad(437, 'the certificate: there is none')
    for (const step of path.steps) {
      const problem = await this.#revocation(step, path)
      if (problem !== undefined) return problem
    }
    return {
      kind: 'good',
      key: first.certificate.publicKey,
      signer: subjectOf(first.certificate),
      tnAuthList: first.facts.tnAuthList,
      from: path.from,
      until: path.until,
    }
  }

  /** Why a certificate does not hold by its revocation list; undefined: it holds. */
  async #revocation(
    { certificate, facts, issuer }: PathStep,
    path: Exclude<CertificatePath, string>,
  ): Promise<BadCertificate | undefined> {
    const [url] = facts.listUrls
    if (url === undefined) return undefined
    const list = await this.#listAt(url)
    const name = subjectOf(certificate)
    if (typeof list === 'string') return bad(436, `the revocation list of ${name}: ${list}`)
    // The list of SHAKEN is signed by the policy administrator, which is an authority of its own.
    const keys = [issuer, ...path.steps.map((step) => step.issuer)].map((each) => each.publicKey)
    const trusted = this.#authorities.map((each) => each.certificate.publicKey)
    if (![...keys, ...trusted].some((key) => list.isSignedBy(key)))
      return bad(437, `the revocation list of ${name} is signed by nobody who is trusted`)
    const serial = plainSerial(certificate.serialNumber)
    return list.has({ issuer: facts.issuer, serial }) ? bad(437, `${name} is revoked`) : undefined
  }

  async #listAt(url: string): Promise<RevocationList | string> {
    const now = this.#deps.now()
    const known = this.#lists.get(url)
    if (known !== undefined && now < known.keptUntil) return known.list
    const { allowPrivate } = this.#deps
    // It is signed, so that plain HTTP is as good (RFC 5280 §4.2.1.13).
    const problem =
      url.length > MAX_URL_LENGTH
        ? 'is too long'
        : (problemOfUrl(url, allowPrivate) ?? unusablePort(url))
    if (problem !== undefined) return `its URL ${problem}`
    const list = await this.#listFetches.join(new URL(url), () => this.#fetchList(url))
    return list ?? 'too many lists are being fetched'
  }

  async #fetchList(url: string): Promise<RevocationList | string> {
    const got = await boundedGet(new URL(url), MAX_LIST_BYTES, this.#deps)
    if (got.kind === 'failed') return got.reason
    const list = readRevocationList(got.body)
    const now = this.#deps.now()
    if (list === undefined) return 'it cannot be read'
    const { nextUpdate = now + GOOD_MS } = list
    if (nextUpdate <= now) return 'it is out of date'
    this.#lists.set(url, { list, keptUntil: Math.min(nextUpdate, now + GOOD_MS) })
    return list
  }

  /** The library takes a while to load, so it waits until certificates have to be read. */
  async #reader() {
    this.#factsOf ??= (await import('./certificate-facts.ts')).factsOf
    return this.#factsOf
  }
}

function chainIn(got: Got): readonly X509Certificate[] | string {
  if (got.kind === 'failed') return got.reason
  // One certificate in DER is common, too (RFC 5280 §4.2.2.1).
  if (got.body[0] !== 0x30) return readCertificates(got.body.toString('latin1'))
  try {
    return [new X509Certificate(got.body)]
  } catch {
    return 'has a certificate that cannot be read'
  }
}

const goodFor = (got: Got): number => {
  const { maxAgeSeconds } = got.kind === 'got' ? got : {}
  return Math.min(GOOD_MS, Math.max(LEAST_GOOD_MS, (maxAgeSeconds ?? Infinity) * 1_000))
}

const bad = (status: BadCertificate['status'], why: string): BadCertificate => ({
  kind: 'bad',
  status,
  why,
})
