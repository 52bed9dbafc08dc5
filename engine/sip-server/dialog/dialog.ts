/**
 * One dialog as one side sees it: RFC 3261 §12. Identifiers, sequence numbers, route set and
 * targets; no messages are sent from here.
 */
import type { Flow } from '../flow.ts'
import { detachString } from '../message/detach-string.ts'
import type { SipMessage } from '../message/message.ts'
import { parseUri } from '../message/uri.ts'
import type { LongDeadline } from './long-deadline.ts'
import type { Reliable1xx } from './reliable-1xx.ts'
import type { Reliable2xx } from './reliable-2xx.ts'
import type { SessionTimer } from './session-timer.ts'

/** The party that sent the INVITE is `uac`; the dialog's id carries that party's tag. */
export type DialogRole = 'uac' | 'uas'

export type DialogState = 'early' | 'confirmed' | 'terminated'

/** What holds the dialog open: a call, or a subscription (RFC 6665). */
export type DialogUsage = 'invite' | 'subscription'

interface DialogStart {
  readonly role: DialogRole
  readonly usage: DialogUsage
  readonly clientId: number
  readonly callId: string
  /** Header values that name the two parties, each with its tag; `remote` may lack one (RFC 2543). */
  readonly local: string
  readonly remote: string
  readonly localTag: string
  readonly remoteTag: string
  readonly localCseq: number
  /** -1 while the other side has not sent a request. */
  readonly remoteCseq: number
  readonly routeSet: readonly string[]
  readonly remoteTarget: string
  /** Our Contact in this dialog. */
  readonly contact: string
  readonly flow: Flow
  /** Requests go back by `flow` instead of to the remote target: a stream, or a peer behind NAT. */
  readonly isFlowBound: boolean
}

/** What an application asked for and what has to wait. */
interface Held {
  send(now: number): void
  /** The dialog has ended. */
  refuse(): void
}

interface Route {
  readonly uri: string
  readonly routes: readonly string[]
  /** Where the request goes next: a strict router stands in the Request-URI (RFC 3261 §12.2.1.1). */
  readonly hop: string
}

export class Dialog {
  readonly id: string
  /** By what a request from the network finds it. */
  readonly key: string
  readonly role: DialogRole
  readonly usage: DialogUsage
  /** The application that has it; of a subscription another one may take over. */
  clientId: number
  readonly callId: string
  readonly localTag: string
  readonly local: string
  state: DialogState = 'early'
  readonly remoteTag: string
  readonly remote: string
  localCseq: number
  remoteCseq: number
  contact: string
  flow: Flow
  isFlowBound: boolean
  /** Where the next request goes as far as it is known, while bound to no flow; the core's to set. */
  way: Flow | undefined
  /** A re-INVITE of ours, or of the peer, that has no final response yet (§14). */
  hasLocalInvite = false
  hasRemoteInvite = false
  /** An UPDATE of ours with an offer, and any UPDATE of the peer, without final response (RFC 3311 §5). */
  hasLocalOffer = false
  hasRemoteUpdate = false
  /** The offer of the INVITE was answered in a provisional response; as UAS: in one that is not reliable. */
  hasEarlyAnswer = false
  /** As UAC: RSeq of the last reliable provisional response for which no PRACK has gone out. */
  unacknowledgedRSeq: number | undefined
  /** Early dialogs of other branches of the same INVITE, by their lower-case tag; all have the same id. */
  forks: Map<string, Dialog> | undefined
  /** The 2xx of ours that still waits for its ACK. */
  reliable2xx: Reliable2xx | undefined
  /** As UAS: the provisional responses that wait for their PRACK. */
  reliable1xx: Reliable1xx | undefined
  /** Of a subscription: when it ends unless it is renewed. */
  expiry: LongDeadline | undefined
  /** Absent: it lives until somebody ends it (RFC 4028). */
  session: SessionTimer | undefined
  /** Re-INVITEs of the application, while one of the stack's own is under way. */
  held: Held[] = noneHeld
  readonly #routeSet: readonly string[]
  #remoteTarget: string
  #route: Route | undefined

  constructor(start: DialogStart) {
    this.role = start.role
    this.usage = start.usage
    this.clientId = start.clientId
    this.callId = detachString(start.callId)
    this.local = detachString(start.local)
    this.remote = detachString(start.remote)
    this.localTag = detachString(start.localTag)
    this.remoteTag = detachString(start.remoteTag)
    this.localCseq = start.localCseq
    this.remoteCseq = start.remoteCseq
    this.#routeSet = start.routeSet.map(detachString)
    this.#remoteTarget = detachString(start.remoteTarget)
    this.contact = detachString(start.contact)
    this.flow = start.flow
    this.isFlowBound = start.isFlowBound
    const inviterTag = start.role === 'uac' ? this.localTag : this.remoteTag
    this.id = detachString(dialogId(this.callId, inviterTag))
    this.key = detachString(dialogKey(this.callId, this.localTag))
  }

  /** §12.2.2: a request with a number below the last one is out of order. Equal numbers belong to ACK. */
  acceptsCseq(number: number): boolean {
    if (number < this.remoteCseq) return false
    this.remoteCseq = number
    return true
  }

  /** §12.2.1.2 and §12.2.2: target refresh requests and their 2xx move the remote target. */
  refreshTarget(message: SipMessage): void {
    const target = message.contact?.uri
    if (target === undefined || target === this.#remoteTarget) return
    this.#remoteTarget = detachString(target)
    this.#route = undefined
    this.way = undefined
  }

  /** The connection is gone: requests go to the remote target again, over a new one. */
  connectionLost(): void {
    this.isFlowBound = false
    this.flow = { ...this.flow, connectionId: 0 }
  }

  /** The dialog of this INVITE with that remote tag, itself or a fork (§12.1.2). */
  branchOf(remoteTag: string): Dialog | undefined {
    const tag = remoteTag.toLowerCase()
    return this.remoteTag.toLowerCase() === tag ? this : this.forks?.get(tag)
  }

  releaseHeld(now: number): void {
    const { held } = this
    this.held = noneHeld
    for (const command of held) command.send(now)
  }

  /** Nothing of it may act any more. */
  ended(): void {
    this.reliable2xx?.stop()
    this.reliable1xx?.stop()
    this.session?.stop()
    this.expiry?.cancel()
    const { held } = this
    this.held = noneHeld
    for (const command of held) command.refuse()
  }

  /** §12.2.1.1: Request-URI and Route of the next request; a strict router takes the first route's place. */
  nextRequestRoute(): Route {
    return (this.#route ??= routeBy(this.#routeSet, this.#remoteTarget))
  }
}

/** Shared by the dialogs that hold nothing; never written to. */
const noneHeld: Held[] = []

/** The id that drachtio applications know: Call-ID and the tag of the party that sent the INVITE. */
export const dialogId = (callId: string, inviterTag: string): string =>
  `${callId};from-tag=${inviterTag}`

/** Call-ID and our tag: tags are compared without case (§19.3). */
export const dialogKey = (callId: string, localTag: string): string =>
  `${callId} ${localTag.toLowerCase()}`

/**
 * The way of a request for `uri` by a route set. A strict router that comes next stands in the
 * Request-URI, and what the request is for behind all others (RFC 3261 §8.1.2, §12.2.1.1, §16.6 step 6).
 */
export function routeBy(routeSet: readonly string[], uri: string): Route {
  const [first, ...rest] = routeSet
  if (first === undefined || isLoose(first)) return { uri, routes: routeSet, hop: first ?? uri }
  return { uri: bareUri(first), routes: [...rest, `<${uri}>`], hop: first }
}

const isLoose = (route: string): boolean => parseUri(bareUri(route))?.params.has('lr') ?? false

/** The URI inside `<…>`, or the value itself. */
export function bareUri(value: string): string {
  const open = value.indexOf('<')
  if (open === -1) return value.trim()
  const close = value.indexOf('>', open)
  return value.slice(open + 1, close === -1 ? undefined : close)
}
