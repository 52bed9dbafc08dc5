/** What the core wants done. Performed by the driver after the transition that wanted it has finished. */
import type { Flow, HopQuestion } from '../flow.ts'

export type Output =
  /** Send one SIP message. A failure comes back as `SipCore.sendFailed` with the same `reference`. */
  | {
      readonly kind: 'send'
      readonly text: string
      readonly flow: Flow
      readonly reference: string
    }
  /** Hand one wire payload (no length prefix) to a connected application. */
  | { readonly kind: 'deliver'; readonly clientId: number; readonly payload: string }
  /** Connect to an application that is to have a request; `clientId` is its id from then on. */
  | { readonly kind: 'summon'; readonly clientId: number; readonly uri: string }
  /** Close the connection of an application after what was delivered to it before. */
  | { readonly kind: 'disconnect'; readonly clientId: number }
  /** Find where a host name is reached; `SipCore.resolved` gets the answer with the `reference`. */
  | { readonly kind: 'resolve'; readonly question: HopQuestion; readonly reference: string }
  /** Close the stream connection of a flow (its peer sent something that cannot be framed or parsed). */
  | { readonly kind: 'close'; readonly flow: Flow }
