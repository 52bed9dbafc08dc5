/**
 * Runs tools for MCP and REST: checks scopes and arguments, runs the tool, writes the audit entry.
 */
import type { Context } from 'hono'
import { z } from 'zod'
import type { Log } from '../../schema/contracts/log.ts'
import type { Principal } from '../auth/principal.ts'
import { lackOf, refuseBeyondDomain } from '../auth/requires.ts'
import type { Scope } from '../auth/scopes.ts'
import { auditedActor, auditEntry, type AuditLog, digestOf } from '../changes/audit.ts'
import type { ChangeEffect } from '../changes/change.ts'
import { ApiError } from '../http/api-error.ts'
import { cleanText, describeArguments } from '../http/clean-text.ts'
import type { Change, ControlEnv } from '../http/control-env.ts'
import type { PeerRequests, OtherInstances } from '../instances/other-instances.ts'
import { allTools } from './catalog/index.ts'
import type { Proposable } from './proposals/proposals.ts'
import { scopesToApprove } from './proposals/rights.ts'
import {
  toolRequest,
  type Tool,
  type ToolAnswer,
  type ToolDeps,
  type ToolListing,
  type ToolUse,
} from './catalog/tool.ts'
import { dataOf } from '../instances/instance-client.ts'
import { parseJson } from '../http/body.ts'

/** The caller, for scopes, tenant and audit. */
export interface ToolCaller {
  readonly principal: Principal
  readonly address: string
  readonly correlationId: string
  /**
   * The other instances of the installation, as the caller may ask them; undefined: there is none
   * to ask.
   */
  readonly peers?: PeerRequests | undefined
  /** Another instance calls for the caller, and writes the audit entry. */
  readonly isInstance?: boolean
  /** The proposal that a person approved; absent: the caller asks by itself. */
  readonly proposalId?: string | undefined
  readonly accept?: ToolUse['accept']
}

export class Toolbox {
  readonly #deps: ToolDeps
  readonly #audit: AuditLog
  readonly #log: Log
  readonly #tools = new Map<string, Tool>(allTools.map((tool) => [tool.name, tool]))

  constructor(deps: ToolDeps, audit: AuditLog, log: Log) {
    this.#deps = deps
    this.#audit = audit
    this.#log = log
  }

  list(): readonly ToolListing[] {
    return [...this.#tools.values()].map(({ listing }) => listing)
  }

  /**
   * Returns the scopes of the tool.
   *
   * @throws {ApiError} 403: the principal lacks one.
   */
  admit(name: string, principal: Principal): readonly Scope[] {
    const tool = this.#tools.get(name)
    if (tool === undefined) throw unknownTool
    admit(tool, { principal })
    return tool.scopes
  }

  /** The scopes that an existing tool requires. */
  scopesOf(name: string): readonly Scope[] {
    return this.#tools.get(name)?.scopes ?? []
  }

  /** Whether the principal may call the tool; an unknown one refuses nobody by scope. */
  admits(name: string, principal: Principal): boolean {
    const tool = this.#tools.get(name)
    try {
      if (tool !== undefined) admit(tool, { principal })
      return true
    } catch {
      return false
    }
  }

  /**
   * The result of a reading tool without arguments. Writes no audit entry, because the result is
   * not shown.
   */
  readUnaudited(name: string, principal: Principal): Promise<ToolAnswer> {
    const tool = this.#tools.get(name)
    if (tool?.listing.annotations.readOnlyHint !== true)
      return Promise.resolve({ kind: 'refused', error: unknownTool })
    return this.#answer(
      tool,
      {},
      this.#useOf(principal, undefined, () => undefined),
    )
  }

  /** Resolves with undefined for an unknown tool. Every call writes one audit entry. */
  async call(name: string, given: unknown, caller: ToolCaller): Promise<ToolAnswer | undefined> {
    const tool = this.#tools.get(name)
    if (tool === undefined) {
      await this.#record(name, given, caller, { kind: 'refused', error: unknownTool }, notAChange)
      return undefined
    }
    let change: Change | undefined
    const { principal, peers, proposalId, accept } = caller
    const used = this.#useOf(principal, peers, (made) => (change = made))
    const use = { ...used, proposalId, accept }
    const own = await this.#answer(tool, given, use)
    const answer = (await fromInstanceOfCall(tool, given, own, peers)) ?? own
    const about = tool.effect === 'reads' ? notAChange : changeIn(given, answer)
    await this.#record(tool.name, given, caller, answer, { ...about, change })
    return answer
  }

  #useOf(
    principal: Principal,
    peers: PeerRequests | undefined,
    changed: (change: Change) => void,
  ): ToolUse {
    return { ...this.#deps, principal, peers, changed, listings: () => this.list() }
  }

  /** A tool as proposals use it. Undefined: there is no such tool, or it changes nothing. */
  proposable(name: string): Proposable | undefined {
    const tool = this.#tools.get(name)
    if (tool === undefined || !isChanging(tool)) return undefined
    return {
      scopes: tool.scopes,
      plan: (given, principal, peers) => this.#plan(tool, given, principal, peers),
      make: async (given, { decider, reason, ...approval }) => {
        const answer = await this.call(name, { ...given, reason }, { ...decider, ...approval })
        if (answer === undefined) throw unknownTool
        if (answer.kind === 'refused') throw answer.error
        return withChange.safeParse(answer.data).data?.change_id ?? null
      },
    }
  }

  proposableNames(): readonly string[] {
    return [...this.#tools.values()].filter(isChanging).map(({ name }) => name)
  }

  /** The plan of a dry run. */
  async #plan(
    tool: Tool,
    given: object,
    principal: Principal,
    peers: PeerRequests | undefined,
  ): Promise<ChangeEffect> {
    let plan: ChangeEffect | undefined
    const accept = (made: ChangeEffect) => (plan = made)
    const use = { ...this.#useOf(principal, peers, () => undefined), accept }
    await tool.use({ ...given, dry_run: true, reason: 'a dry run' }, use)
    if (plan === undefined) throw new Error(`${tool.name} changes something without a plan`)
    return plan
  }

  async #answer(tool: Tool, given: unknown, use: ToolUse): Promise<ToolAnswer> {
    try {
      admit(tool, use)
      return { kind: 'done', data: await tool.use(given, use) }
    } catch (error) {
      if (error instanceof ApiError) return { kind: 'refused', error: cleaned(error) }
      this.#log('error', 'tool failed', {
        tool: tool.name,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      })
      return { kind: 'refused', error: failed }
    }
  }

  async #record(
    tool: string,
    given: unknown,
    caller: ToolCaller,
    answer: ToolAnswer,
    { change, change_id, reason }: AuditedChange,
  ): Promise<void> {
    if (caller.isInstance === true) return
    await this.#audit.record(
      auditEntry({
        at: this.#deps.now(),
        by: auditedActor(caller.principal),
        address: caller.address,
        action: `tool ${cleanText(tool, 100)}`,
        target: describeArguments(given),
        status: answer.kind === 'done' ? 200 : answer.error.status,
        code: answer.kind === 'done' ? null : answer.error.code,
        digests: { before: digestOf(change?.before), after: digestOf(change?.after) },
        correlationId: caller.correlationId,
        changeId: change_id,
        reason,
      }),
    )
  }
}

const isChanging = ({ effect }: Tool): boolean => effect === 'changes' || effect === 'destroys'

interface AuditedChange {
  readonly change?: Change | undefined
  readonly change_id: string | null
  readonly reason: string | null
}

const notAChange: AuditedChange = { change_id: null, reason: null }

const withReason = z.looseObject({ reason: z.string().optional() })
const withChange = z.looseObject({ change_id: z.string().nullable().optional() })

/** Another instance may have made the change: the answer has its id. */
function changeIn(given: unknown, answer: ToolAnswer): AuditedChange {
  const reason = withReason.safeParse(given).data?.reason
  const made =
    answer.kind === 'done' ? withChange.safeParse(answer.data).data?.change_id : undefined
  return {
    change_id: made ?? null,
    reason: reason === undefined ? null : cleanText(reason),
  }
}

const unknownTool = new ApiError(404, 'unknown_tool', 'Unknown tool')

const failed = new ApiError(
  500,
  'internal_error',
  'The tool failed with an internal error. The log has the cause. Retry at most once.',
)

/** A person who approves a proposal needs no scope of MCP: those are of agents. */
function admit(
  tool: Tool,
  { principal, proposalId }: Pick<ToolUse, 'principal' | 'proposalId'>,
): void {
  const { name } = tool
  const scopes = proposalId === undefined ? tool.scopes : scopesToApprove(tool.scopes)
  const lacking = scopes.filter((scope) => !principal.scopes.has(scope))
  if (lacking.length === 0) {
    for (const scope of scopes) refuseBeyondDomain(principal, scope)
    return
  }
  throw new ApiError(
    403,
    'insufficient_scope',
    `${lackOf(name, lacking, principal)}. ${
      isChanging(tool) && principal.scopes.has('mcp:propose')
        ? `Call propose_change with tool ${JSON.stringify(name)}, the same arguments and a ` +
          'reason: a person decides'
        : 'Ask an administrator for a key with this scope. Retrying will not help'
    }`,
  )
}

/** A message may quote an argument, or text that an untrusted party stored. */
function cleaned({ status, code, message, details, headers }: ApiError): ApiError {
  return new ApiError(status, code, cleanText(message), {
    headers,
    ...(details !== undefined && {
      details: details.slice(0, 20).map((detail) => ({
        path: cleanText(detail.path, 100),
        message: cleanText(detail.message),
      })),
    }),
  })
}

/** Returns the caller of a tool from a request that passed `requires(…)`. */
export const callerOf = (
  c: Context<ControlEnv>,
  others: OtherInstances | undefined,
): ToolCaller => ({
  peers: others?.of(c),
  isInstance: c.get('instanceRequest') !== undefined,
  principal: c.get('principal'),
  address: c.get('clientAddress'),
  correlationId: c.get('correlationId'),
})

const aboutCall = z.looseObject({ call_uuid: z.string().max(200) })
const result = z.record(z.string(), z.unknown())

/** The result of the instance that has the call; undefined: the result of this instance stands. */
async function fromInstanceOfCall(
  tool: Tool,
  given: unknown,
  own: ToolAnswer,
  peers: PeerRequests | undefined,
): Promise<ToolAnswer | undefined> {
  const isMissing = own.kind === 'refused' && own.error.status === 404
  const named = aboutCall.safeParse(given)
  if (peers === undefined || !tool.isAboutCall || !isMissing || !named.success) return undefined
  const location = await peers.locate(named.data.call_uuid)
  if (location === 'nowhere') return undefined
  const answer =
    location === 'unknown' ? undefined : await peers.at(location, toolRequest(tool.name, given))
  if (answer === undefined) return { kind: 'refused', error: unreachable }
  if (answer.status === 404) return undefined
  const data = dataOf(answer, result)
  if (data !== undefined) return { kind: 'done', data }
  return { kind: 'refused', error: refusalIn(answer.body) ?? unreachable }
}

const unreachable = new ApiError(
  503,
  'node_unreachable',
  'A node of the platform does not answer: it may have the call. Retry in a few seconds',
)

const refused = z.looseObject({ error: z.string(), code: z.string() })

/** The refusal of the instance, as a 409. */
function refusalIn(body: Buffer): ApiError | undefined {
  const parsed = parseJson(body.toString('utf8'))
  const read = refused.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return read.success ? new ApiError(409, read.data.code, read.data.error) : undefined
}
