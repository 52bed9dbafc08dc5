/**
 * Node's answer, with headers that are there before its handler runs. Each `setHeader` beside a
 * `writeHead` would be checked, stored, read back and merged: eleven of them cost 3 µs. Kept as a
 * plain list and handed over with the rest they cost next to nothing.
 */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'

/** What is told of each answer, once, when its status is known. */
interface AnswerCount {
  /** Headers may still be set. */
  add(status: number, answer: Pick<ApiAnswer, 'req' | 'setEarly'>): void
}

export class ApiAnswer<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  count: AnswerCount | undefined
  /** Of the key that asks: how many of its requests succeeded. */
  used: { requests: number } | undefined
  /** Names and values in turn. */
  readonly #early: string[] = []

  /** Stands in the answer unless its handler sets the same name. A name is given once. */
  setEarly(name: string, value: string): void {
    this.#early.push(name, value)
  }

  override writeHead(
    status: number,
    message?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    this.count?.add(status, this)
    if (status < 400 && this.used !== undefined) this.used.requests += 1
    const own = typeof message === 'string' ? headers : message
    if (typeof message === 'string') this.statusMessage = message
    return super.writeHead(status, merged(this.#early, own))
  }
}

/** Names and values in turn; whatever the handler set wins. */
function merged(
  early: readonly string[],
  own: OutgoingHttpHeaders | readonly OutgoingHttpHeader[] | undefined,
): OutgoingHttpHeader[] {
  const all: OutgoingHttpHeader[] = []
  const later = own === undefined ? [] : isList(own) ? own : pairsOf(own)
  for (let index = 0; index < early.length; index += 2) {
    const name = early[index] ?? ''
    if (!sets(later, name)) all.push(name, early[index + 1] ?? '')
  }
  for (const each of later) all.push(each)
  return all
}

const isList = (
  headers: OutgoingHttpHeaders | readonly OutgoingHttpHeader[],
): headers is readonly OutgoingHttpHeader[] => Array.isArray(headers)

function pairsOf(headers: OutgoingHttpHeaders): OutgoingHttpHeader[] {
  const pairs: OutgoingHttpHeader[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) pairs.push(name, value)
  }
  return pairs
}

function sets(pairs: readonly OutgoingHttpHeader[], name: string): boolean {
  for (let index = 0; index < pairs.length; index += 2) {
    const other = pairs[index]
    // Lengths differ nearly always, and tell it for less.
    if (typeof other !== 'string' || other.length !== name.length) continue
    if (other === name || other.toLowerCase() === name.toLowerCase()) return true
  }
  return false
}
