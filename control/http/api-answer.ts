/**
 * A Node response whose headers can be set before its handler runs. Each `setHeader` next to a
 * `writeHead` is checked, stored, read back and merged: eleven of them cost 3 µs. As a plain list
 * passed with the rest they cost almost nothing.
 */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'

/** Called once per response, when its status is known. */
interface AnswerCount {
  /** Method and path pattern; absent: no route. */
  readonly route?: string
  /** Headers can still be set. */
  add(status: number, answer: Pick<ApiAnswer, 'req' | 'setEarly'>): void
}

/** Records responses by route and client. */
interface AnswerActivity {
  ended(status: number, route: string, address: string, refusal: string | undefined): void
}

export class ApiAnswer<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  count: AnswerCount | undefined
  /** The usage of the presented key, which counts its successful requests. */
  used: { succeeded(): void } | undefined
  /** The code of the error that is the response. */
  refusal: string | undefined
  #activity: AnswerActivity | undefined
  #address = ''
  /** Names and values alternate. */
  readonly #early: string[] = []

  /** @param address of the client. */
  noted(activity: AnswerActivity, address: string): void {
    this.#activity = activity
    this.#address = address
  }

  /** Sets a header unless the handler sets the same name. Each name is set once. */
  setEarly(name: string, value: string): void {
    this.#early.push(name, value)
  }

  /** Changes a header that `setEarly` has set. */
  changeEarly(name: string, value: string): void {
    const at = this.#early.indexOf(name)
    if (at === -1) this.setEarly(name, value)
    else this.#early[at + 1] = value
  }

  override writeHead(
    status: number,
    message?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    this.count?.add(status, this)
    if (status < 400) this.used?.succeeded()
    const route = this.count?.route ?? 'none'
    this.#activity?.ended(status, route, this.#address, this.refusal)
    const own = typeof message === 'string' ? headers : message
    if (typeof message === 'string') this.statusMessage = message
    return super.writeHead(status, merged(this.#early, own))
  }
}

/** Names and values alternate; headers of the handler win. */
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
    // Lengths differ almost always, and comparing them is cheaper.
    if (typeof other !== 'string' || other.length !== name.length) continue
    if (other === name || other.toLowerCase() === name.toLowerCase()) return true
  }
  return false
}
