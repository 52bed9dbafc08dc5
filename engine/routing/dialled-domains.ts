import { networkInterfaces } from 'node:os'
import { plainHost } from '../../schema/sip/index.ts'

interface DialledDomainsDeps {
  readonly advertisedHost: string | undefined
  /** Further names of ours (`SIP_HOST_NAMES`). */
  readonly hostNames: readonly string[]
  /** Domains of others that may be called (`FOREIGN_DOMAINS`). */
  readonly foreignDomains: readonly string[]
  /** The SIP listeners; none before SIP is served. */
  readonly listeners: () => readonly { readonly host: string }[]
}

const everywhere = new Set(['0.0.0.0', '::'])

/**
 * Hosts in a Request-URI that mean this installation, and foreign domains that phones may call by
 * DNS.
 */
export class DialledDomains {
  readonly #deps: DialledDomainsDeps
  readonly #allowed: ReadonlySet<string>
  /** Names and addresses of ours; undefined until SIP is served. */
  #own: ReadonlySet<string> | undefined

  constructor(deps: DialledDomainsDeps) {
    this.#deps = deps
    this.#allowed = new Set(deps.foreignDomains.map(plainHost))
  }

  readonly isOwn = (host: string): boolean => {
    if (this.#own) return this.#own.has(host)
    const own = this.#hosts()
    if (this.#deps.listeners().length > 0) this.#own = own
    return own.has(host)
  }

  readonly isAllowed = (host: string): boolean => this.#allowed.has(host)

  /** A listener that is everywhere has every address of the machine. */
  #hosts(): ReadonlySet<string> {
    const { advertisedHost, hostNames, listeners } = this.#deps
    const bound = listeners().map(({ host }) => host)
    const machine = bound.some((host) => everywhere.has(host))
      ? Object.values(networkInterfaces()).flatMap((each = []) =>
          each.map(({ address }) => address),
        )
      : []
    const names = [
      'localhost',
      ...hostNames,
      ...(advertisedHost === undefined ? [] : [advertisedHost]),
    ]
    return new Set([...names, ...bound, ...machine].map(plainHost))
  }
}
