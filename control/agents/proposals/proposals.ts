/**
 * Proposals of agents and what people decide. A decision is made by one conditional UPDATE; the
 * change itself is made after it, under the proposal's id, which its entry in the log of changes
 * names. So the outcome is known after a crash, and no second decision makes the change again.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { EnginePort } from '../../../schema/contracts/engine.ts'
import type { EventType } from '../../../schema/contracts/engine.ts'
import { transaction } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Scope } from '../../auth/scopes.ts'
import type { TenantScope } from '../../auth/tenants.ts'
import { auditedActor } from '../../changes/audit.ts'
import { type ChangeEffect, MAX_EFFECT } from '../../changes/change.ts'
import { ApiError, badRequest, conflict, notFound } from '../../http/api-error.ts'
import { clean, cleanText } from '../../http/clean-text.ts'
import type { PeerRequests } from '../../instances/other-instances.ts'
import type { Webhooks } from '../../webhooks/webhooks.ts'
import {
  argumentsOf,
  type ProposalDecision,
  type ProposalFilter,
  type ProposalRow,
  ProposalStore,
  proposalView,
  type ProposalView,
  type ProposedEffect,
} from './proposal-store.ts'
import {
  asIfEntitled,
  type ProposerDeps,
  refuseAgent,
  refuseBlind,
  refuseLostProposer,
  refuseUnentitled,
} from './rights.ts'
import { newUuid, type Platform } from '../../http/platform.ts'

interface ProposalsDeps extends ProposerDeps, Pick<Platform, 'store' | 'randomBytes'> {
  readonly webhooks: Pick<Webhooks, 'write'>
  readonly engine: Pick<EnginePort, 'tell'>
  readonly tenants: Pick<TenantScope, 'narrow'>
  readonly tools: ProposableTools
}

export interface NewProposal {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly reason: string
  readonly expiresInSeconds: number
}

/**
 * Open proposals of one credential, and of one tenant or the platform. A person reads each of them.
 */
const MAX_OPEN_OF_ACTOR = 20
const MAX_OPEN_OF_TENANT = 100
/** Characters. */
const MAX_ARGUMENTS = 8_192
/**
 * No request takes so long: an approved change without an outcome by then is one of a process that
 * has ended.
 */
const LONGEST_CHANGE_MS = 120_000

export class Proposals {
  readonly #deps: ProposalsDeps
  readonly #rows: ProposalStore

  constructor(deps: ProposalsDeps) {
    this.#deps = deps
    this.#rows = new ProposalStore(deps.store)
  }

  /** Undefined: there is no such tool, or it changes nothing. */
  tool(name: string): Proposable | undefined {
    return this.#deps.tools.find(name)
  }

  toolNames(): readonly string[] {
    return this.#deps.tools.names()
  }

  async list(filter: ProposalFilter, slice: { readonly limit: number; readonly offset: number }) {
    const { rows, total } = await this.#rows.list(filter, slice)
    return { proposals: rows.map((row) => this.#shownNow(row)), total }
  }

  async find(uuid: string, tenantId: number | null): Promise<ProposalView | undefined> {
    const row = await this.#rows.find(uuid, tenantId)
    return row && this.#shownNow(row)
  }

  /** Shows an expired proposal as expired, before maintenance does. */
  #shownNow(row: ProposalRow): ProposalView {
    const isOver = row.state === 'open' && row.expires_at <= this.#deps.now()
    return proposalView(isOver ? { ...row, state: 'expired' } : row)
  }

  /**
   * Stores a proposal; an open one of the same change by the same credential is returned again, as
   * things are now.
   */
  async propose(
    { tool: name, arguments: written, reason: words, expiresInSeconds }: NewProposal,
    tool: Proposable,
    { principal, peers }: Pick<Decider, 'principal' | 'peers'>,
  ): Promise<{ readonly proposal: ProposalView; readonly isNew: boolean }> {
    const { store, now, randomBytes } = this.#deps
    const given = argumentsIn(written)
    const text = JSON.stringify(given)
    const reason = cleanText(words)
    refuseBlind(principal, name, tool.scopes)
    const plan = await tool.plan(given, asIfEntitled(principal), peers)
    if (isDeepStrictEqual(plan.before, plan.after))
      throw conflict('nothing_to_change', `${plan.effect} There is nothing to propose`)
    const shown = shownOf(plan)
    const { actor, actor_name } = auditedActor(principal)
    const { tenantId, domain } = principal
    const digest = digestOf([name, tenantId, domain, text])
    const uuid = newUuid(randomBytes)
    await this.tick()
    return transaction(store, async () => {
      const same = await this.#rows.openOf(actor, digest)
      if (same !== undefined) {
        if (same.plan_digest !== shown.plan_digest)
          await this.#rows.show(same.uuid, same.revision, shown)
        return { proposal: proposalView(await this.#row(same.uuid)), isNew: false }
      }
      await this.#refuseTooMany(actor, tenantId)
      await this.#rows.insert({
        uuid,
        at: now(),
        tenant_id: tenantId,
        domain,
        actor,
        actor_name,
        tool: name,
        arguments: text,
        arguments_digest: digest,
        reason,
        ...shown,
        expires_at: now() + expiresInSeconds * 1_000,
        ...noDecision,
      })
      const row = await this.#row(uuid)
      await this.#announce('proposal.created', row)
      return { proposal: proposalView(row), isNew: true }
    })
  }

  async #refuseTooMany(actor: string, tenantId: number | null): Promise<void> {
    const own = await this.#rows.countOpen({ actor })
    const ofTenant = await this.#rows.countOpen({ tenantId })
    if (own < MAX_OPEN_OF_ACTOR && ofTenant < MAX_OPEN_OF_TENANT) return
    throw new ApiError(
      429,
      'too_many_proposals',
      'There are already ' +
        (own < MAX_OPEN_OF_ACTOR
          ? `${ofTenant} open proposals of this tenant: `
          : `${own} open proposals of this credential: `) +
        'wait until a person has decided on them',
      { headers: { 'Retry-After': '600' } },
    )
  }

  /** Resolves with the proposal as it is then. */
  async refuse(uuid: string, note: string | null, decider: Decider): Promise<ProposalView> {
    const row = await this.#decidable(uuid, decider)
    const done = await transaction(this.#deps.store, async () => {
      const decision = this.#decision(note, decider)
      if (!(await this.#rows.claim(uuid, 'refused', null, decision))) return undefined
      return this.#settled(uuid, { settled_at: this.#deps.now(), change_id: null, failure: null })
    })
    if (done === undefined) throw decidedBefore(await this.#row(row.uuid))
    return done
  }

  /**
   * Makes the change as it was shown under `revision`. Rejects with 409 `changed_since` when it
   * would have another effect now, which the proposal then shows, and with 409 `target_changed`
   * when a name leads to something else now.
   */
  async approve(
    uuid: string,
    { revision, note }: { readonly revision: number; readonly note: string | null },
    decider: Decider,
  ): Promise<ProposalView> {
    const row = await this.#decidable(uuid, decider)
    const tool = this.#deps.tools.find(row.tool)
    if (tool === undefined) throw conflict('unknown_tool', `There is no tool ${row.tool} any more`)
    refuseUnentitled(decider.principal, row.tool, tool.scopes)
    await refuseLostProposer(row.actor, this.#deps)
    if (row.revision !== revision) throw changedSince()
    const principal = await this.#inPlaceOf(row, decider.principal)
    const given = argumentsOf(row)
    const shown = shownOf(await tool.plan(given, principal, decider.peers))
    refuseOtherTarget(row, shown)
    if (shown.plan_digest !== row.plan_digest) {
      await this.#rows.show(uuid, row.revision, shown)
      throw changedSince()
    }
    const decision = this.#decision(note, decider)
    if (!(await this.#rows.claim(uuid, 'approved', revision, decision)))
      throw decidedBefore(await this.#row(uuid))
    const accept: Approval['accept'] = (plan) => {
      const about = shownOf(plan)
      refuseOtherTarget(row, about)
      if (about.plan_digest !== shown.plan_digest) throw changedSince()
    }
    const by = { ...decider, principal }
    const approval = { accept, proposalId: uuid, reason: row.reason, decider: by }
    return this.#make(uuid, () => tool.make(given, approval))
  }

  /** From here on nothing decides again: whatever happens, the outcome is noted. */
  async #make(uuid: string, make: () => Promise<string | null>): Promise<ProposalView> {
    const settled_at = this.#deps.now()
    try {
      const change_id = await make()
      return await this.#settledAlone(uuid, { settled_at, change_id, failure: null })
    } catch (error) {
      // After an internal error nobody knows whether the change was made: `tick` finds out.
      if (!(error instanceof ApiError) || error.status >= 500) throw error
      const failure = `${error.message} (${error.code})`
      await this.#settledAlone(uuid, { settled_at, change_id: null, failure })
      throw error
    }
  }

  #settledAlone(uuid: string, settlement: Parameters<ProposalStore['settle']>[1]) {
    return transaction(this.#deps.store, () => this.#settled(uuid, settlement))
  }

  async #settled(
    uuid: string,
    settlement: Parameters<ProposalStore['settle']>[1],
  ): Promise<ProposalView> {
    const isFirst = await this.#rows.settle(uuid, settlement)
    const row = await this.#row(uuid)
    if (isFirst) await this.#announce('proposal.decided', row)
    return proposalView(row)
  }

  /**
   * Ends expired proposals, and notes the outcome of changes whose process has ended before it
   * could. Called periodically, on every instance.
   */
  async tick(): Promise<void> {
    const { store, now } = this.#deps
    await transaction(store, async () => {
      for (const row of await this.#rows.expire(now()))
        await this.#announce('proposal.decided', row)
    })
    for (const { uuid } of await this.#rows.unsettled(now() - LONGEST_CHANGE_MS)) {
      const change_id = (await this.#rows.changeOn(uuid)) ?? null
      const failure =
        change_id === null
          ? 'The process ended before the outcome was noted, and no change is entered for it'
          : null
      await this.#settledAlone(uuid, { settled_at: now(), change_id, failure })
    }
  }

  /**
   * The proposal, if it is open and the decider may decide on it. Throws 404 when the decider may
   * not see it.
   */
  async #decidable(uuid: string, { principal }: Decider): Promise<ProposalRow> {
    const row = await this.#rows.find(uuid, principal.tenantId)
    if (row === undefined) throw notFound('Proposal')
    refuseAgent(principal, row.actor)
    if (row.state !== 'open') throw decidedBefore(row)
    if (row.expires_at <= this.#deps.now()) throw decidedBefore({ ...row, state: 'expired' })
    return row
  }

  #decision(note: string | null, { principal, via }: Decider): ProposalDecision {
    const { actor, actor_name } = auditedActor(principal)
    return {
      decided_at: this.#deps.now(),
      decided_by: actor,
      decided_by_name: actor_name,
      decided_via: via,
      note: note && cleanText(note),
    }
  }

  /** The decider with the tenant and the domain in which the agent has seen the effect. */
  async #inPlaceOf(row: ProposalRow, principal: Principal): Promise<Principal> {
    const slug = row.tenant_slug ?? undefined
    const narrowed = await this.#deps.tenants.narrow(principal, slug)
    if (narrowed.tenantId !== row.tenant_id) throw notFound('Proposal')
    return row.domain === null ? narrowed : { ...narrowed, domain: row.domain }
  }

  async #row(uuid: string): Promise<ProposalRow> {
    const row = await this.#rows.find(uuid, null)
    if (row === undefined) throw notFound('Proposal')
    return row
  }

  /** Runs in the transaction of the caller. */
  async #announce(type: EventType & `proposal.${string}`, row: ProposalRow): Promise<void> {
    const { store, webhooks, engine } = this.#deps
    await webhooks.write({ type, tenantId: row.tenant_id, data: proposalView(row) })
    const { uuid: proposalId, tenant_id: tenantId, tool, state } = row
    store.statements.afterCommit(() => engine.tell({ type, tenantId, proposalId, tool, state }))
  }
}

const noDecision = {
  decided_at: null,
  decided_by: null,
  decided_by_name: null,
  decided_via: null,
  note: null,
  settled_at: null,
  change_id: null,
  failure: null,
} as const

/**
 * Counts of who is affected change all the time: they are shown, and only the risk that follows is
 * compared.
 */
function shownOf(plan: ChangeEffect): ProposedEffect {
  const risk = riskOf(plan.undo === 'restores', plan.affected)
  const effect = cleanText(plan.effect, MAX_EFFECT)
  const before = clean(plan.before)
  const undo = undoTexts[plan.undo]
  const target = plan.row ?? `${plan.target.kind} ${plan.target.id}`
  return {
    effect,
    affected: JSON.stringify(plan.affected),
    previous_state: JSON.stringify(before),
    undo,
    risk,
    target,
    plan_digest: digestOf([effect, target, before, undo, risk]),
  }
}

const undoTexts = {
  restores: 'undo_change',
  none: 'It cannot be undone',
  repeats: 'by the tool that made the change',
} as const

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url')

/**
 * The arguments as they are stored, shown and used: in one order, without what the proposal itself
 * says. Text that would not be shown as it is, such as a token, is refused.
 */
function argumentsIn(written: NewProposal['arguments']): Readonly<Record<string, unknown>> {
  const { dry_run: _, reason: __, ...own } = written
  const given = Object.fromEntries(Object.entries(own).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const text = JSON.stringify(given)
  if (text.length > MAX_ARGUMENTS)
    throw badRequest(`The arguments exceed ${MAX_ARGUMENTS} characters`)
  if (text === JSON.stringify(clean(given))) return given
  throw badRequest(
    'The arguments contain a secret, a text of more than 512 characters or a text that ' +
      'cannot be shown: name the target by its id',
  )
}

/** Names can pass to other rows: an approval is only for the row that was shown. */
function refuseOtherTarget({ target: shown }: ProposalRow, { target }: ProposedEffect): void {
  if (shown === null || shown === target) return
  throw conflict(
    'target_changed',
    `The proposal was shown for ${shown}, but its arguments now mean ${target}, because a name ` +
      'has moved. ' +
      'Nothing changed: refuse the proposal, and ask for a new one that names its target by id',
  )
}

const changedSince = (): ApiError =>
  conflict(
    'changed_since',
    'The change would have another effect now than the one that you saw. Nothing changed: ' +
      'read the proposal again before you decide',
  )

const decidedBefore = ({ state, decided_by }: ProposalRow): ApiError =>
  conflict(
    'already_decided',
    state === 'expired'
      ? 'The proposal has expired. Nothing changed'
      : `The proposal is ${state} already${decided_by === null ? '' : `, by ${decided_by}`}`,
  )

/** The proposal and the decider of a change. */
export interface Approval {
  /** Throws when the change, as it is about to be made, is not the one that was approved. */
  readonly accept: (plan: ChangeEffect) => void
  readonly proposalId: string
  readonly reason: string
  readonly decider: Decider
}

type Arguments = Readonly<Record<string, unknown>>

export interface Proposable {
  /** All that the tool requires. */
  readonly scopes: readonly Scope[]
  /**
   * Changes nothing. Throws an `ApiError` where the tool would refuse.
   *
   * @param peers the other instances, one of which may have the target of the change; undefined:
   * this process is alone.
   */
  readonly plan: (
    given: Arguments,
    principal: Principal,
    peers: PeerRequests | undefined,
  ) => Promise<ChangeEffect>
  /** Resolves with the `change_id`; null: there was nothing to change. */
  readonly make: (given: Arguments, approval: Approval) => Promise<string | null>
}

export interface ProposableTools {
  /** Undefined: there is no such tool, or it changes nothing. */
  find(name: string): Proposable | undefined
  names(): readonly string[]
}

/** A person who decides, or a program that is no agent. */
export interface Decider {
  readonly principal: Principal
  /** `link`: by the link of a webhook, with the rights of the user who answers for it. */
  readonly via: 'api' | 'link'
  readonly address: string
  readonly correlationId: string
  /** The other instances of the installation; undefined: there is none to ask. */
  readonly peers: PeerRequests | undefined
}

export type Risk = 'low' | 'medium' | 'high'

/**
 * More than so many calls or requests at a time are high risk, even where the change can be undone.
 */
const MANY = 100

/** Other figures say what is left, or describe what surrounds the target. */
const isOfAffected = (name: string): boolean =>
  /^(live_calls|calls|requests)/.test(name) && !name.endsWith('_of_set')

/**
 * High: it cannot be undone, or more than a hundred calls or requests are affected. Medium: some
 * are affected now. Low: it can be undone, and none is affected now.
 */
export function riskOf(isReversible: boolean, affected: Readonly<Record<string, number>>): Risk {
  const counts = Object.entries(affected).flatMap(([name, count]) =>
    isOfAffected(name) ? [count] : [],
  )
  const most = Math.max(0, ...counts)
  if (!isReversible || most > MANY) return 'high'
  return most > 0 ? 'medium' : 'low'
}
