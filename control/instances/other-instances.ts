/**
 * Asks the other instances of the installation. A request of another instance is answered by this
 * instance alone, so no request is forwarded twice.
 */
import type { Context } from 'hono'
import type { Clocks, Schedule } from '../../schema/clock.ts'
import { authorizationOf } from '../auth/authenticate.ts'
import { type ControlEnv, requestHeader, setAnswerHeader, type Step } from '../http/control-env.ts'
import { admitInstances } from './admit-instance.ts'
import type { Peer } from './membership.ts'
import {
  bodyOf,
  InstanceClient,
  type InstanceClientDeps,
  type OpenAnswer,
  type Outgoing,
  type PeerAnswer,
} from './instance-client.ts'
import { countsAnswer, type Question, QUESTIONS_PATH } from './questions.ts'

/** Names of instances whose part is missing, in every response that is about all instances. */
const UNREACHABLE_HEADER = 'X-Unreachable-Nodes'
/** How long the instance of a call may take for an action. */
const ACTION_MS = 10_000

type Request = Pick<Outgoing, 'method' | 'target' | 'headers' | 'body'>

export interface WithOthers {
  /** The other instances of the installation; undefined: this process is alone. */
  readonly others?: OtherInstances | undefined
}

export interface PeerAnswers {
  readonly answers: readonly PeerAnswer[]
  readonly unreachable: readonly string[]
}

/** Not 404, which an instance without the call answers, nor statuses that are about the request. */
const isOfOwner = ({ status }: PeerAnswer): boolean =>
  status < 500 && status !== 404 && status !== 401 && status !== 403

/** Where a call is: on this instance, on none, or not known, because instances did not answer. */
export type CallAtInstance = Peer | 'nowhere' | 'unknown'

export class OtherInstances {
  readonly self: string
  readonly client: InstanceClient
  readonly admit: Step
  readonly schedule: Schedule
  readonly #deps: InstanceClientDeps

  constructor(deps: InstanceClientDeps & Clocks) {
    this.self = deps.self
    this.schedule = deps.schedule
    this.client = new InstanceClient(deps)
    this.admit = admitInstances(deps, deps)
    this.#deps = deps
  }

  /** Undefined: another instance asks, and gets the answer of this instance alone. */
  of(c: Context<ControlEnv>): PeerRequests | undefined {
    return c.get('instanceRequest') === undefined ? new PeerRequests(c, this) : undefined
  }

  peers(): readonly Peer[] {
    return this.#deps.peers()
  }

  /** Asks each instance at once. An answer that is not 200 is none. */
  async all(outgoing: Outgoing | ((peer: Peer) => Outgoing)): Promise<PeerAnswers> {
    const peers = this.peers()
    const alive = peers.filter(({ isAlive }) => isAlive)
    const responses = await Promise.all(
      alive.map((peer) =>
        this.client.ask(peer, typeof outgoing === 'function' ? outgoing(peer) : outgoing),
      ),
    )
    const answers = responses.filter((answer) => answer?.status === 200) as PeerAnswer[]
    const answered = new Set(answers.map(({ peer }) => peer.name))
    const unreachable = peers.map(({ name }) => name).filter((name) => !answered.has(name))
    return { answers, unreachable }
  }

  questionOf(question: Question): Outgoing {
    return { method: 'GET', target: QUESTIONS_PATH, claims: { address: '', question } }
  }
}

/** The other instances as one request asks them: with its credential, from its address. */
export class PeerRequests {
  readonly #c: Context<ControlEnv>
  readonly #instances: OtherInstances

  constructor(c: Context<ControlEnv>, instances: OtherInstances) {
    this.#c = c
    this.#instances = instances
  }

  /**
   * The same request, or another one, to every instance. The response names those that did not
   * answer.
   */
  async all(request: Request): Promise<readonly PeerAnswer[]> {
    return this.#answersOf(await this.gather(request))
  }

  /** The same for a response that says by itself which instances did not answer. */
  gather(request: Request): Promise<PeerAnswers> {
    return this.#instances.all(this.#outgoing(request))
  }

  async question(question: Question | ((peer: Peer) => Question)): Promise<readonly PeerAnswer[]> {
    const ask = typeof question === 'function' ? question : () => question
    return this.#answersOf(
      await this.#instances.all((peer) => this.#instances.questionOf(ask(peer))),
    )
  }

  get self(): string {
    return this.#instances.self
  }

  /**
   * The response of the first instance that knows what the request is about; undefined: none does.
   * 'unknown': none does, and an instance that is alive did not say.
   */
  first(request: Request): Promise<PeerAnswer | 'unknown' | undefined> {
    return this.#first(this.#outgoing(request), isOfOwner)
  }

  /**
   * The answer of the first instance that knows it; undefined: no instance does. 'unknown' as in
   * `first`.
   */
  answered(question: Question): Promise<PeerAnswer | 'unknown' | undefined> {
    return this.#first(this.#instances.questionOf(question), ({ status }) => status === 200)
  }

  /** Has the instance do something. Undefined: it may have happened or not. */
  instruct(peer: Peer, question: Question): Promise<PeerAnswer | undefined> {
    const outgoing = this.#instances.questionOf(question)
    return this.#instances.client.ask(peer, { ...outgoing, waitMs: ACTION_MS })
  }

  async locate(callUuid: string): Promise<CallAtInstance> {
    const answer = await this.answered({ kind: 'locate', callUuid })
    return answer === undefined ? 'nowhere' : answer === 'unknown' ? 'unknown' : answer.peer
  }

  /** The instance's answer; undefined: the action may have happened or not. */
  at(peer: Peer, request: Request): Promise<PeerAnswer | undefined> {
    return this.#instances.client.ask(peer, { ...this.#outgoing(request), waitMs: ACTION_MS })
  }

  /**
   * The instance's response as soon as its head is there; undefined: it has not answered in time.
   */
  open(peer: Peer, request: Request): Promise<OpenAnswer | undefined> {
    return this.#instances.client.open(peer, this.#outgoing(request), new AbortController().signal)
  }

  /** Names instances that did not answer in the response. */
  reportUnreachable(names: readonly string[]): void {
    if (names.length === 0 || this.#c.get('isPartial')) return
    this.#c.set('isPartial', true)
    setAnswerHeader(this.#c, UNREACHABLE_HEADER, names.join(', '))
  }

  #answersOf({ answers, unreachable }: PeerAnswers): readonly PeerAnswer[] {
    this.reportUnreachable(unreachable)
    return answers
  }

  async #first(
    outgoing: Outgoing,
    knows: (answer: PeerAnswer) => boolean,
  ): Promise<PeerAnswer | 'unknown' | undefined> {
    const peers = this.#instances.peers()
    const alive = peers.filter(({ isAlive }) => isAlive)
    const silent = peers.filter(({ isAlive }) => !isAlive).map(({ name }) => name)
    let isUnknown = false
    const ask = async (peer: Peer): Promise<PeerAnswer> => {
      const answer = await this.#instances.client.ask(peer, outgoing)
      if (answer !== undefined && knows(answer)) return answer
      if (answer?.status !== 404) {
        isUnknown = true
        silent.push(peer.name)
      }
      throw new Error('not there')
    }
    try {
      return await Promise.any(alive.map(ask))
    } catch {
      this.reportUnreachable(silent)
      return isUnknown ? 'unknown' : undefined
    }
  }

  #outgoing(request: Request): Outgoing {
    const c = this.#c
    const authorization = authorizationOf(c)
    const apiKey = requestHeader(c, 'x-api-key')
    const tenantSlug = requestHeader(c, 'x-tenant-slug')
    return {
      ...request,
      headers: { ...request.headers, 'x-correlation-id': c.get('correlationId') },
      claims: {
        address: c.get('clientAddress'),
        ...(authorization !== undefined && { authorization }),
        ...(apiKey !== undefined && { apiKey }),
        ...(tenantSlug !== undefined && { tenantSlug }),
      },
    }
  }
}

/** The kinds of rows with live calls: nodes of dispatcher sets, carriers, AI agents. */
type Kind = 'nodes' | 'carriers' | 'agents'

/**
 * How many live calls other instances have for these ids; undefined: there is no other instance to
 * ask.
 */
export function countsOfPeers(
  c: Context<ControlEnv>,
  others: OtherInstances | undefined,
  kind: Kind,
  ids: readonly number[],
): Promise<((id: number) => number) | undefined> {
  return countsFrom(others?.of(c), kind, ids)
}

/** The same for instances that the request may ask. */
export async function countsFrom(
  peers: PeerRequests | undefined,
  kind: Kind,
  ids: readonly number[],
): Promise<((id: number) => number) | undefined> {
  if (peers === undefined) return undefined
  const answers = await peers.question({ kind: 'counts', of: kind, ids: [...ids] })
  const counts = answers.map((answer) => bodyOf(answer, countsAnswer) ?? {})
  return (id) => counts.reduce((sum, count) => sum + (count[id] ?? 0), 0)
}
