/** What the core wants done. The driver performs it after the transition that wanted it has finished. */
import type { AppEvent, PingAnswer, PingDone } from '../application.ts'
import type { Flow, HopQuestion } from '../flow.ts'
import type { RequestRoute } from '../options.ts'
import type { Traffic } from './traffic.ts'

export type Output =
  /** Send one SIP message. A failure comes back as `SipCore.sendFailed` with the same `reference`. */
  | {
      readonly kind: 'send'
      readonly text: string
      readonly flow: Flow
      readonly reference: string
    }
  /** Tell a connected application. */
  | { readonly kind: 'deliver'; readonly clientId: number; readonly event: AppEvent }
  /** Connect to the application that is to get a request; `clientId` is its id from then on. */
  | { readonly kind: 'dial-out'; readonly clientId: number; readonly uri: string }
  /** Close the connection of an application after what was delivered to it before. */
  | { readonly kind: 'disconnect'; readonly clientId: number }
  /** Find where a host name is reached; `SipCore.resolved` gets the answer with the `reference`. */
  | { readonly kind: 'resolve'; readonly question: HopQuestion; readonly reference: string }
  /** It is not known yet what becomes of a request; `SipCore.routed` gets it. */
  | {
      readonly kind: 'await-route'
      readonly route: Promise<RequestRoute | undefined>
      readonly transactionId: string
    }
  /** Tell what came of a ping. */
  | { readonly kind: 'pinged'; readonly done: PingDone; readonly answer: PingAnswer }
  /** Close the stream connection of a flow. */
  | { readonly kind: 'close'; readonly flow: Flow }

export class Outbox {
  readonly #traffic: Traffic
  #outputs: Output[] = []
  #next = 0

  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  send(text: string, flow: Flow, reference: string): void {
    this.#traffic.sent(text)
    this.#outputs.push({ kind: 'send', text, flow, reference })
  }

  /** The same for a copy of what was sent before. */
  repeat(text: string, flow: Flow, reference: string): void {
    this.#traffic.repeated(text)
    this.send(text, flow, reference)
  }

  push(output: Output): void {
    this.#outputs.push(output)
  }

  /** Takes the next one out. */
  take(): Output | undefined {
    const output = this.#outputs[this.#next]
    if (output === undefined) {
      if (this.#next > 0) {
        this.#outputs = []
        this.#next = 0
      }
      return undefined
    }
    this.#next += 1
    return output
  }

  get size(): number {
    return this.#outputs.length - this.#next
  }
}
