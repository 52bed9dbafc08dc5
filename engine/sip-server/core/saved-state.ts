/**
 * Dialogs and answers that outlive this process. Saving is on the path of each call: plain object
 * literals, nothing parsed. Values to restore were read from a file: each field is checked.
 */
import type {
  RequestEvent,
  SavedDialog,
  SavedFlow,
  SavedInvite,
  SavedSession,
} from '../application.ts'
import { Dialog, dialogId } from '../dialog/dialog.ts'
import { isReliable, sideFor, type Flow } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import { parseMessage } from '../../../schema/sip/parse.ts'
import { watchLostFlow } from './lost-flows.ts'
import type { CoreParts } from './parts.ts'
import type { SessionTimers } from './session-timers.ts'
import { type AnsweredRequest, serverKey } from './transactions.ts'
import { mergeKeyOf, type InboundRequests } from './uas/inbound-request.ts'
import { completeVias, requestText } from './app-headers.ts'
import type { Responder } from './uas/responder.ts'

/**
 * Requests of ours since the dialog was saved, its refreshes among them, have used up fewer numbers
 * than this.
 */
const CSEQ_STEP = 10_000

/**
 * Copies of a request by UDP are 4 s apart at most, unless they are of an INVITE (RFC 3261
 * §17.1.2.2).
 */
const COPIES_MS = 10_000

interface SavedAnswer extends Omit<AnsweredRequest, 'flow'> {
  readonly flow?: SavedFlow
}

interface SavedStateParts extends CoreParts {
  readonly requests: InboundRequests
  readonly responder: Responder
  readonly sessions: SessionTimers
}

export class SavedState {
  readonly #parts: SavedStateParts

  constructor(parts: SavedStateParts) {
    this.#parts = parts
  }

  /**
   * The answers of the last seconds as texts: a copy that the next process reads gets the same
   * answer.
   */
  answers(now: number): readonly string[] {
    const answers: string[] = []
    for (const { flow, ...answered } of this.#parts.transactions.answered(now - COPIES_MS)) {
      // A stream repeats nothing.
      if (flow !== undefined && isReliable(flow.listener.protocol)) continue
      answers.push(JSON.stringify(flow ? { ...answered, flow: savedFlow(flow) } : answered))
    }
    return answers
  }

  restoreAnswers(answers: readonly string[], now: number): void {
    for (const text of answers) {
      const saved = readAnswer(text)
      if (saved === undefined) continue
      const { key, toTag, response, flow } = saved
      const way = flow && this.#flowOf(flow)
      this.#parts.transactions.keepResponse(key, toTag, response, way, now)
    }
  }

  saveDialog(clientId: number, id: string): SavedDialog | undefined {
    const dialog = this.#parts.dialogs.find(id)
    if (dialog?.clientId !== clientId || dialog.usage !== 'invite') return undefined
    return dialog.state === 'confirmed' && !dialog.awaitsAck ? savedDialog(dialog) : undefined
  }

  /** From here on the tag of its responses is fixed, whether one has left or not. */
  saveInvite(clientId: number, transactionId: string): SavedInvite | undefined {
    const inbound = this.#parts.requests.find(transactionId, clientId)
    if (inbound?.isCall !== true) return undefined
    const { request, transaction, dialog } = inbound
    const head = headOf(request)
    const [toTag, flow] = [inbound.fixTag(), savedFlow(transaction.flow)]
    if (dialog === undefined) return { head, flow, toTag }
    const { contact, localCseq, remoteCseq } = dialog
    return { head, flow, toTag, early: { contact, localCseq, remoteCseq } }
  }

  restoreDialog(clientId: number, saved: SavedDialog, now: number): boolean {
    const { dialogs, sessions } = this.#parts
    const flow = isDialog(saved) ? this.#flowOf(saved.flow) : undefined
    if (flow === undefined) return false
    const dialog = new Dialog({
      ...saved,
      usage: 'invite',
      state: 'confirmed',
      clientId,
      flow,
      localCseq: saved.localCseq + CSEQ_STEP,
      routeSet: saved.routeSet ?? [],
      isFlowBound: saved.isFlowBound === true && flow.listener.protocol === 'udp',
    })
    if (dialogs.find(dialog.id) !== undefined) return false
    dialogs.add(dialog)
    if (saved.session) sessions.resumed(dialog, saved.session, now)
    if (isReliable(flow.listener.protocol)) watchLostFlow(this.#parts, dialog, now)
    return true
  }

  restoreInvite(clientId: number, saved: SavedInvite, now: number): RequestEvent | undefined {
    const { transactions, responder, dialogs } = this.#parts
    const { toTag, early } = saved
    const source = isInvite(saved) ? this.#flowOf(saved.flow) : undefined
    const request = parseMessage(source === undefined ? '' : saved.head)
    if (source === undefined || request.kind !== 'request' || request.via === undefined)
      return undefined
    const key = serverKey(request, request.via, 'INVITE')
    const id = dialogId(request.callId, request.fromTag)
    const isKnown = transactions.server(key) !== undefined || dialogs.find(id) !== undefined
    if (isKnown || request.method !== 'INVITE' || request.toTag !== '') return undefined
    const vias = completeVias(request, request.via, source)
    const { port, returnPort = port } = saved.flow
    // The connection is gone: the answer goes where the Via says (RFC 3261 §18.2.2).
    const flow = { ...source, port: returnPort }
    const mergeKey = mergeKeyOf(request, 'INVITE')
    const arrival = { request, vias, key, mergeKey, flow, source, toTag }
    const { transactionId } = responder.resume(arrival, clientId, raised(early), now)
    const text = requestText(request, vias)
    const passed = { transactionId, dialogId: '', text, message: request, came: request.text }
    return { kind: 'request', ...passed, flow: source, now, isNew: true }
  }

  #flowOf({ protocol, own, ownPort, address, port, hostName }: SavedFlow): Flow | undefined {
    const listener = this.#parts.hops
      .listeners()
      .find((each) => each.protocol === protocol && each.address === own && each.port === ownPort)
    const flow = listener && {
      listener: sideFor(listener, address),
      address,
      port,
      connectionId: 0,
    }
    return flow && hostName !== undefined ? { ...flow, hostName } : flow
  }
}

/** The digest response has been checked: passwords could be tried against it. */
function headOf(request: SipMessage): string {
  const head = request.text.slice(0, request.bodyStart)
  const hasCredentials = request.has('Proxy-Authorization') || request.has('Authorization')
  return hasCredentials ? head.replaceAll(credentials, '') : head
}

const credentials = /^(?:Proxy-)?Authorization[ \t]*:.*\r?\n(?:[ \t].*\r?\n)*/gim

const raised = (early: SavedInvite['early']): SavedInvite['early'] =>
  early && { ...early, localCseq: early.localCseq + CSEQ_STEP }

function savedDialog(dialog: Dialog): SavedDialog {
  const { role, callId, local, remote, localTag, remoteTag, session } = dialog
  const { localCseq, remoteCseq, contact } = dialog
  const { routeSet, remoteTarget, flow, isFlowBound } = dialog.routeToPeer
  const saved: { -readonly [K in keyof SavedDialog]: SavedDialog[K] } = {
    role,
    callId,
    local,
    remote,
    localTag,
    remoteTag,
    localCseq,
    remoteCseq,
    contact,
    routeSet: routeSet.length > 0 ? routeSet : undefined,
    remoteTarget,
    flow: savedFlow(flow),
    isFlowBound: isFlowBound || undefined,
  }
  if (session) {
    const { terms, takesUpdate, dueAt } = session
    const { seconds, isOurs, isAgreed } = terms
    const localSdp = session.localSdp || undefined
    const minSeconds = session.minSeconds || undefined
    saved.session = { seconds, isOurs, isAgreed, localSdp, takesUpdate, minSeconds, dueAt }
  }
  return saved
}

function savedFlow({ listener, address, port, returnPort, hostName }: Flow): SavedFlow {
  const { protocol, address: own, port: ownPort } = listener
  const saved: { -readonly [K in keyof SavedFlow]: SavedFlow[K] } = {
    protocol,
    own,
    ownPort,
    address,
    port,
  }
  if (returnPort !== undefined) saved.returnPort = returnPort
  if (hostName !== undefined) saved.hostName = hostName
  return saved
}

// ---- checks of values that were read from a file ----

type Kind = 'string' | 'number' | 'boolean'
type Shape<T> = Readonly<Partial<Record<keyof T, Kind>>>

const dialogShape: Shape<SavedDialog> = {
  role: 'string',
  callId: 'string',
  local: 'string',
  remote: 'string',
  localTag: 'string',
  remoteTag: 'string',
  localCseq: 'number',
  remoteCseq: 'number',
  contact: 'string',
  remoteTarget: 'string',
}
/** An earlier version wrote each of them. */
const optionalOfDialog: Shape<SavedDialog> = { isFlowBound: 'boolean' }
const sessionShape: Shape<SavedSession> = {
  seconds: 'number',
  isOurs: 'boolean',
  isAgreed: 'boolean',
  takesUpdate: 'boolean',
  dueAt: 'number',
}
const optionalOfSession: Shape<SavedSession> = { localSdp: 'string', minSeconds: 'number' }
const answerShape: Shape<SavedAnswer> = { key: 'string', toTag: 'string', response: 'string' }
const flowShape: Shape<SavedFlow> = { own: 'string', address: 'string', port: 'number' }
const earlyShape: Shape<SavedDialog> = {
  contact: 'string',
  localCseq: 'number',
  remoteCseq: 'number',
}

const isDialog = (saved: SavedDialog): boolean =>
  hasShape(saved, dialogShape) &&
  mayHave(saved, optionalOfDialog) &&
  (saved.role === 'uac' || saved.role === 'uas') &&
  (saved.routeSet === undefined || isListOfStrings(saved.routeSet)) &&
  hasShape(saved.flow, flowShape) &&
  (saved.session === undefined || isSession(saved.session))

const isSession = (saved: SavedSession): boolean =>
  hasShape(saved, sessionShape) && mayHave(saved, optionalOfSession) && saved.seconds > 0

const isListOfStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

const isInvite = ({ head, toTag, flow, early }: SavedInvite): boolean =>
  typeof head === 'string' &&
  typeof toTag === 'string' &&
  hasShape(flow, flowShape) &&
  (early === undefined || hasShape(early, earlyShape))

/** Undefined: the disk has damaged it. */
function readAnswer(text: string): SavedAnswer | undefined {
  try {
    const saved = JSON.parse(text) as SavedAnswer
    const { flow } = saved
    const isWhole =
      hasShape(saved, answerShape) && (flow === undefined || hasShape(flow, flowShape))
    return isWhole ? saved : undefined
  } catch {
    return undefined
  }
}

/** Whether a value from a file has the fields of a `T`. */
function hasShape<T extends object>(value: T | null | undefined, shape: Shape<T>): boolean {
  if (typeof value !== 'object' || value === null) return false
  for (const key in shape) if (typeof value[key] !== shape[key]) return false
  return true
}

/** The same for fields that may be absent. */
function mayHave<T extends object>(value: T, shape: Shape<T>): boolean {
  for (const key in shape)
    if (value[key] !== undefined && typeof value[key] !== shape[key]) return false
  return true
}
