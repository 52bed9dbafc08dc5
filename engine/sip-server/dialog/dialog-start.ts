/** What a dialog is begun with. */
import type { Flow } from '../flow.ts'

/** The party that sent the INVITE is `uac`; the dialog's id carries that party's tag. */
export type DialogRole = 'uac' | 'uas'

/** What holds the dialog open: a call, or a subscription (RFC 6665). */
export type DialogUsage = 'invite' | 'subscription'

export interface RouteToPeer {
  readonly routeSet: readonly string[]
  readonly remoteTarget: string
  readonly flow: Flow
  /** Requests go back by `flow` instead of to the remote target: a stream, or a peer behind NAT. */
  readonly isFlowBound: boolean
}

export interface DialogStart extends RouteToPeer {
  readonly role: DialogRole
  readonly usage: DialogUsage
  /** Default: `early`. */
  readonly state?: 'early' | 'confirmed'
  readonly clientId: number
  readonly callId: string
  /** Header values that name the two parties, each with its tag; `remote` may lack one (RFC 2543). */
  readonly local: string
  readonly remote: string
  readonly localTag: string
  readonly remoteTag: string
  readonly localCseq: number
  /** -1 until the other side has sent a request. */
  readonly remoteCseq: number
  /** Our Contact in this dialog. */
  readonly contact: string
}
