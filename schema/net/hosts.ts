/** The servers of a URL, of which one is the primary; another one may become it later. */
import type pg from 'pg'

/** The servers of a URL, of which one is used at a time. */
export class Hosts {
  readonly #urls: readonly string[]
  readonly #mustWrite: boolean
  #current = 0

  constructor(url: string) {
    this.#urls = urlsOf(url) ?? [url]
    const required = URL.canParse(url) ? new URL(url).searchParams.get(ATTRIBUTE) : null
    this.#mustWrite = this.#urls.length > 1 || (required ?? 'any') !== 'any'
  }

  get count(): number {
    return this.#urls.length
  }

  /** The URL of the current server. */
  get url(): string {
    return this.#urls[this.#current] ?? ''
  }

  /** The server does not answer, or refuses writes: the next one becomes current. */
  failed(url: string): void {
    if (url === this.url) this.#current = (this.#current + 1) % this.#urls.length
  }

  /**
   * Checks that a new connection accepts writes, if the URL requires it.
   *
   * @throws {Error} the server is a standby.
   */
  async check(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
    if (!this.#mustWrite) return
    const { rows } = await client.query<{ readonly transaction_read_only: string }>(
      'SHOW transaction_read_only',
    )
    if (rows[0]?.transaction_read_only !== 'off') throw new Error('the server is a standby')
  }
}

/**
 * With several hosts, writes are always required; with one host, only if this attribute says so.
 */
const ATTRIBUTE = 'target_session_attrs'
/** Other values of libpq would allow servers that store nothing. */
const ATTRIBUTES = ['any', 'primary', 'read-write']

/**
 * The servers that a URL names, as programs of PostgreSQL read it:
 * `postgres://user@one:5432,two:5432/database`, or the same list in `host` and `port` behind the
 * question mark. One URL for each host, in that order. Undefined: it is not a URL of PostgreSQL.
 */
export function urlsOf(url: string): readonly string[] | undefined {
  const [, start, authority, rest] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is.exec(url) ?? []
  if (start === undefined || authority === undefined || rest === undefined) return undefined
  const urls = authority.split(',').flatMap((host) => withEachHost(`${start}${host}${rest}`))
  return urls.every(isUsable) ? urls : undefined
}

function withEachHost(text: string): readonly string[] {
  if (!URL.canParse(text)) return [text]
  const { searchParams } = new URL(text)
  const hosts = searchParams.get('host')?.split(',') ?? []
  if (hosts.length < 2) return [text]
  const ports = searchParams.get('port')?.split(',') ?? []
  return hosts.map((host, index) => {
    const url = new URL(text)
    url.searchParams.set('host', host)
    const port = ports[index] ?? ports[0]
    if (port !== undefined) url.searchParams.set('port', port)
    return url.href
  })
}

const isUsable = (text: string): boolean =>
  URL.canParse(text) &&
  ATTRIBUTES.includes(new URL(text).searchParams.get(ATTRIBUTE) ?? ATTRIBUTES[0] ?? '')
