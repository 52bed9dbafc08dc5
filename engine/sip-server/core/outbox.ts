/** The outputs of the core. The driver performs them after the transition that has made them. */
import type { AppEvent, PingAnswer, PingDone } from '../application.ts'
import type { Flow, HopQuestion } from '../flow.ts'
import type { RequestRoute } from '../options.ts'
import type { Traffic } from './traffic.ts'
import { flattened } from '../../../schema/sip/message.ts'

export type Output =
  /**
   * Send one SIP message. A failure comes back as `SipCore.sendFailed` with the same `reference`,
   * if there is one.
   */
  | {
      readonly kind: 'send'
      readonly text: string
      readonly flow: Flow
      readonly reference: string
    }
  /** Hand an event to a connected application. */
  | { readonly kind: 'deliver'; readonly clientId: number; readonly event: AppEvent }
  /** Connect to the application that is to get a request; `clientId` is its id from then on. */
  | { readonly kind: 'dial-out'; readonly clientId: number; readonly uri: string }
  /** Close the connection of an application after the events that were delivered before. */
  | { readonly kind: 'disconnect'; readonly clientId: number }
  /** Find where a host name is reached; `SipCore.resolved` gets the answer with the `reference`. */
  | { readonly kind: 'resolve'; readonly question: HopQuestion; readonly reference: string }
  /** Wait for the route of a request; `SipCore.routed` gets it. */
  | {
      readonly kind: 'await-route'
      readonly route: Promise<RequestRoute | undefined>
      readonly transactionId: string
    }
  /** Report the answer to a ping. */
  | { readonly kind: 'pinged'; readonly done: PingDone; readonly answer: PingAnswer }
  /** Close the stream connection of a flow. */
  | { readonly kind: 'close'; readonly flow: Flow }
  /** Report that a connection over which a phone has registered is gone. */
  | { readonly kind: 'registered-flow-closed'; readonly flow: Flow }

export class Outbox {
  readonly #traffic: Traffic
  /**
   * Outputs stand from `#next` up to `#end`. It never shrinks: a new array for each transition
   * costs more.
   */
  readonly #outputs: (Output | undefined)[] = []
  #next = 0
  #end = 0

  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  send(text: string, flow: Flow, reference: string): void {
    // Many read it from here on, and a sum of parts is slow to read.
    flattened(text)
    this.#traffic.sent(text)
    this.push({ kind: 'send', text, flow, reference })
  }

  /** The same for a copy of what was sent before. */
  repeat(text: string, flow: Flow, reference: string): void {
    this.#traffic.repeated(text)
    this.send(text, flow, reference)
  }

  push(output: Output): void {
    this.#outputs[this.#end++] = output
  }

  /** Takes the next one out. */
  take(): Output | undefined {
    const output = this.#outputs[this.#next]
    if (output === undefined) this.#next = this.#end = 0
    else this.#outputs[this.#next++] = undefined
    return output
  }

  get size(): number {
    return this.#end - this.#next
  }
}

/** The command that an answer quotes. */
export interface CommandRef {
  readonly clientId: number
  readonly id: string
}

/** The application that a request is meant for. */
export type ApplicationRoute = { readonly tag: string } | { readonly uri: string }
