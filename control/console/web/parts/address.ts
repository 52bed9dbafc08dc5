/** The address of a screen: `/console/<screen>/<item>?<state of its tables>`. */

export interface ScreenAddress {
  /** Empty: the first that the user may see. */
  readonly screen: string
  /** Undefined: the screen as a whole. */
  readonly item: string | undefined
  readonly query: Readonly<Record<string, string>>
}

export function readAddress(pathname: string, search: string): ScreenAddress {
  const [, , screen = '', item = ''] = pathname.split('/')
  const query = Object.fromEntries(new URLSearchParams(search))
  return {
    screen: decoded(screen),
    item: item === '' ? undefined : decoded(item),
    query,
  }
}

export function pathOf(
  screen: string,
  item?: string,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') words.set(name, value)
  const parts = item === undefined ? [screen] : [screen, item]
  const path = `/console/${parts.map(encodeURIComponent).join('/')}`
  const text = words.toString()
  return text === '' ? path : `${path}?${text}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
