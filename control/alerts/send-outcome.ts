/** The end of an attempt to send a message. */
export type SendOutcome =
  /** `refused`: some of its receivers were refused, in a line for people. */
  | { readonly kind: 'sent'; readonly refused?: string }
  | {
      readonly kind: 'failed'
      /** One line for people, without secrets. */
      readonly reason: string
      /** The receiver will never take it. */
      readonly isFinal: boolean
      /** The delay that the receiver asks for; 0: none. */
      readonly retryAfterMs: number
    }
