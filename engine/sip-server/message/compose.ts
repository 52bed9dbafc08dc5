/** Messages as an application writes them: a start line, few headers, a body. */
import { knownName, splitList } from './headers.ts'

/** Values by name, in any spelling. */
export type HeaderValues = Readonly<Record<string, string | undefined>>

class ComposedMessage {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly status: number
  readonly reason: string
  readonly body: string
  readonly #entries: (readonly [name: string, value: string])[] = []

  constructor(
    kind: 'request' | 'response',
    [method, uri]: readonly [string, string],
    [status, reason]: readonly [number, string],
    headers: HeaderValues,
    body: string,
  ) {
    this.kind = kind
    this.method = method
    this.uri = uri
    this.status = status
    this.reason = reason
    this.body = body
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined) this.#entries.push([knownName(name) ?? name, value])
    }
  }

  entries(): readonly (readonly [name: string, value: string])[] {
    return this.#entries
  }

  get(name: string): string | undefined {
    const wanted = knownName(name) ?? name
    return this.#entries.find(([own]) => own === wanted)?.[1]
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** Every element of a comma-list header. */
  list(name: string): readonly string[] {
    const value = this.get(name)
    return value === undefined ? [] : splitList(value)
  }
}

export const composeRequest = (
  method: string,
  uri: string,
  headers: HeaderValues,
  body = '',
): ComposedMessage => new ComposedMessage('request', [method, uri], [0, ''], headers, body)

/** `reason` empty: the usual one. */
export const composeResponse = (
  status: number,
  reason: string,
  headers: HeaderValues,
  body = '',
): ComposedMessage => new ComposedMessage('response', ['', ''], [status, reason], headers, body)
