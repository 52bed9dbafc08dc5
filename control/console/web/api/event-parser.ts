/**
 * Reads server-sent events (HTML Living Standard, "Server-sent events") out of the pieces in which
 * they arrive.
 */

export interface StreamEvent {
  readonly id: string
  readonly type: string
  readonly data: string
}

/** A line of the server is far shorter. */
const MAX_PENDING = 1_048_576

export class EventParser {
  #pending = ''
  #id = ''
  #type = ''
  #data: string[] = []

  /** Returns the events that this piece completes. */
  push(text: string): StreamEvent[] {
    const lines = (this.#pending + text).split('\n')
    this.#pending = (lines.pop() ?? '').slice(-MAX_PENDING)
    return lines.flatMap((line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line))
  }

  #line(line: string): StreamEvent[] {
    if (line === '') return this.#complete()
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'id') this.#id = value
    else if (field === 'event') this.#type = value
    else if (field === 'data') this.#data.push(value)
    return []
  }

  #complete(): StreamEvent[] {
    const event = { id: this.#id, type: this.#type, data: this.#data.join('\n') }
    const isEmpty = this.#data.length === 0
    this.#type = ''
    this.#data = []
    return isEmpty ? [] : [event]
  }
}
