/**
 * The servers that a URL names, as programs of PostgreSQL read it: `postgres://user@one:5432,two:5432/database`, or the
 * same list in `host` and `port` behind the question mark.
 */

/** Of several hosts one that takes writes is used, whatever this says; of one host, where it says so. */
export const ATTRIBUTE = 'target_session_attrs'
/** Others of libpq would lead to servers on which nothing can be stored. */
const ATTRIBUTES = ['any', 'primary', 'read-write']

/** One URL for each host, in the order of the list. Undefined: it is not a URL of PostgreSQL. */
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
