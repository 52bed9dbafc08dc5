/** Which of the servers of a URL is used: one of them is the primary; the others may be in a while. */
import type pg from 'pg'

/** The servers of a URL, of which one is used at a time. */
export class Hosts {
  readonly #urls: readonly string[]
  readonly #mustWrite: boolean
  #current = 0

  constructor(url: string) {
    this.#urls = urlsOf(url) ?? [url]
    const asked = URL.canParse(url) ? new URL(url).searchParams.get(ATTRIBUTE) : null
    this.#mustWrite = this.#urls.length > 1 || (asked ?? 'any') !== 'any'
  }

  get count(): number {
    return this.#urls.length
  }

  /** Of the one that was used last. */
  get url(): string {
    return this.#urls[this.#current] ?? ''
  }

  /** That one does not answer, or takes no writes: the next one is tried. */
  failed(url: string): void {
    if (url === this.url) this.#current = (this.#current + 1) % this.#urls.length
  }

  /**
   * A new connection is to one that takes writes, if that was asked for.
   *
   * @throws {Error} it is a standby.
   */
  async check(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
    if (!this.#mustWrite) return
    const { rows } = await client.query<{ readonly transaction_read_only: string }>(
      'SHOW transaction_read_only',
    )
    if (rows[0]?.transaction_read_only !== 'off') throw new Error('the server is a standby')
  }
}

/** Of several hosts one that takes writes is used, whatever this says; of one host, where it says so. */
const ATTRIBUTE = 'target_session_attrs'
/** Others of libpq would lead to servers on which nothing can be stored. */
const ATTRIBUTES = ['any', 'primary', 'read-write']

/**
 * The servers that a URL names, as programs of PostgreSQL read it: `postgres://user@one:5432,two:5432/database`, or the
 * same list in `host` and `port` behind the question mark. One URL for each host, in that order. Undefined: it is not a
 * URL of PostgreSQL.
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
