/** AI agents: which one a dialled number means, and whether it can take one more call. */
import { Buckets } from '../../schema/buckets.ts'
import type { CallLimit } from '../shares/call-limit.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import { isName } from '../../schema/rules/numbers.ts'
import type { AgentRecord } from './routing-records.ts'
import type { Tenancy } from './tenancy.ts'

/** One agent offered to one call. */
export interface AgentCandidate {
  readonly kind: 'agent'
  readonly agentId: number
  readonly name: string
  readonly tenantId: number | null
  /** The Request-URI. */
  readonly uri: string
  readonly stripHeaders?: readonly string[] | undefined
  /** `admit` is asked before each attempt (`max_calls`). */
  readonly isLimited?: true
}

export type AgentDecision =
  | { readonly kind: 'agent'; readonly agent: AgentCandidate }
  /** The agent has reached its `max_calls`: 503 with `Retry-After`. */
  | { readonly kind: 'limited'; readonly limit?: string }

export class Agents {
  readonly #limit: Pick<CallLimit, 'isReached' | 'admit'>
  readonly #byId = new Map<number, AgentRecord>()
  /** Agents by number, and by name in small letters. */
  readonly #dialled = new Buckets<string, AgentRecord>()
  readonly #ownsNumber: Tenancy['ownsNumber']

  constructor(
    agents: readonly AgentRecord[],
    limit: Pick<CallLimit, 'isReached' | 'admit'>,
    ownsNumber: Tenancy['ownsNumber'],
  ) {
    this.#limit = limit
    this.#ownsNumber = ownsNumber
    for (const agent of agents) this.set(agent)
  }

  set(agent: AgentRecord): void {
    this.delete(agent.agentId)
    this.#byId.set(agent.agentId, agent)
    if (agent.isActive) for (const key of keysOf(agent)) this.#dialled.add(key, agent)
  }

  delete(agentId: number): void {
    const agent = this.#byId.get(agentId)
    if (agent === undefined) return
    this.#byId.delete(agentId)
    for (const key of keysOf(agent)) this.#dialled.delete(key, agent)
  }

  /** All agents, those that are switched off, too. */
  all(): IterableIterator<AgentRecord> {
    return this.#byId.values()
  }

  /** Undefined: there is none, or it is switched off. */
  find(agentId: number): AgentDecision | undefined {
    return this.#decide(this.#active(agentId))
  }

  /**
   * Asked before each attempt; true: the call is to be counted there in this turn of the event
   * loop.
   */
  admit(agentId: number): boolean | Promise<boolean> {
    return this.#limit.admit(agentId, this.#active(agentId)?.maxCalls ?? 0)
  }

  mediaOf(agentId: number): MediaRules | undefined {
    return this.#active(agentId)?.media
  }

  /**
   * Returns the agent of a number or name: the tenant's, or the platform's. A caller of no tenant
   * reaches a tenant's agent too, by a number that belongs to this tenant.
   */
  dialled(number: string, tenantId: number | null): AgentDecision | undefined {
    const agents = this.#dialled.of(number.toLowerCase())
    const common = agents.find((agent) => agent.tenantId === null)
    if (tenantId !== null)
      return this.#decide(agents.find((agent) => agent.tenantId === tenantId) ?? common)
    const owner = agents.find(
      (agent) => agent.tenantId !== null && this.#ownsNumber(agent.tenantId, number),
    )
    return this.#decide(common ?? owner)
  }

  #active(agentId: number): AgentRecord | undefined {
    const agent = this.#byId.get(agentId)
    return agent?.isActive === true ? agent : undefined
  }

  #decide(agent: AgentRecord | undefined): AgentDecision | undefined {
    if (!agent) return undefined
    const { agentId, name, tenantId, uri, maxCalls, stripHeaders } = agent
    if (this.#limit.isReached(agentId, maxCalls))
      return { kind: 'limited', limit: `agent ${agentId}, max_calls ${maxCalls}` }
    const candidate = { kind: 'agent', agentId, name, tenantId, uri, stripHeaders } as const
    return { kind: 'agent', agent: maxCalls > 0 ? { ...candidate, isLimited: true } : candidate }
  }
}

/** The dialled texts that mean an agent: its number, and its name where that is no number. */
function keysOf({ extension, name }: AgentRecord): readonly string[] {
  const key = name.toLowerCase()
  return isName(key) ? [extension, key] : [extension]
}
