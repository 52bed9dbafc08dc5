/** Reads `GET /api/v1/events` as a browser would: over HTTP, event after event. */
import type { TollgateProcess } from './tollgate-process.ts'
import { patienceMs } from './waiting.ts'

export interface StreamedEvent {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export class EventReader {
  readonly #abort = new AbortController()
  readonly #events: StreamedEvent[] = []
  #onEvent: () => void = () => undefined

  /** `lastId`: of the last event that was read before. */
  static async open(
    tollgate: TollgateProcess,
    token: string,
    lastId?: string,
  ): Promise<EventReader> {
    const reader = new EventReader()
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/events`, {
      headers: lastId === undefined ? headers : { ...headers, 'Last-Event-ID': lastId },
      signal: reader.#abort.signal,
    })
    if (answer.body === null || answer.status !== 200)
      throw new Error(`events: status ${answer.status}`)
    // Ends with an error when the reader is closed.
    void reader.#read(answer.body).catch(() => undefined)
    return reader
  }

  /** The next event of this type that has not been taken yet; those before it are skipped. */
  async next(type: string): Promise<StreamedEvent> {
    const deadline = Date.now() + patienceMs
    for (;;) {
      while (this.#events.length > 0) {
        const event = this.#events.shift()
        if (event?.type === type) return event
      }
      const leftMs = deadline - Date.now()
      if (leftMs <= 0) throw new Error(`no event ${type}`)
      await new Promise<void>((resolve) => {
        this.#onEvent = resolve
        setTimeout(resolve, leftMs)
      })
    }
  }

  close(): void {
    this.#abort.abort()
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = ''
    const decoder = new TextDecoder()
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) this.#take(block)
    }
  }

  #take(block: string): void {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
    const [id, type, data] = ['id', 'event', 'data'].map(field)
    if (type === undefined || data === undefined) return
    this.#events.push({ id: id ?? '', type, data: JSON.parse(data) as StreamedEvent['data'] })
    this.#onEvent()
  }
}
