/** Defines a tool for AI agents (SPECIFICATION.md §4.4). */
import { z } from 'zod'
import { readApart } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Scope } from '../../auth/scopes.ts'
import type { TenantScope } from '../../auth/tenants.ts'
import type { AuditLog } from '../../changes/audit.ts'
import {
  answerOf,
  change,
  changeDuration,
  type ChangeOrder,
  changeOutput,
  changeReason,
  dryRun,
  type Plan,
} from '../../changes/change.ts'
import type { Kinds } from '../../changes/kinds.ts'
import { type ApiError, badRequest } from '../../http/api-error.ts'
import { cursorQuery, pageEnd, pageEndView, skippedBy } from '../../http/envelope.ts'
import { clean } from '../../http/clean-text.ts'
import type { Change } from '../../http/control-env.ts'
import { type Platform, newUuid } from '../../http/platform.ts'
import { withKnownTenant } from '../../http/tenant-spelling.ts'
import { problemsOf } from '../../http/validate.ts'
import type { PeerRequests } from '../../instances/other-instances.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import type { Pause } from '../../reports/cdr-store.ts'
import type { WithReports } from '../../reports/reports.ts'
import type { Reratings } from '../../resources/reratings/reratings.ts'
import type { Proposals } from '../proposals/proposals.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import type { KeyUsage } from '../../auth/key-usage.ts'

/** The dependencies of all tools. */
export interface ToolDeps
  extends
    Pick<
      Platform,
      'store' | 'engine' | 'instances' | 'ocs' | 'settings' | 'now' | 'steadyNow' | 'randomBytes'
    >,
    WithReports {
  readonly kinds: Kinds
  readonly keys: KeyStore
  readonly tenants: Pick<TenantScope, 'clear'>
  /** Undefined: another OCS has prices and wallets. */
  readonly reratings: Reratings | undefined
  readonly usage: Pick<KeyUsage, 'ofLastHour'>
  readonly audit: Pick<AuditLog, 'list'>
  readonly proposals: Pick<Proposals, 'tool' | 'toolNames' | 'propose' | 'list'>
  readonly telemetry: Pick<Telemetry, 'read' | 'readForTenant'>
  /** Yields to the event loop during a long search. */
  readonly pause: Pause
}

/**
 * One call of a tool: the dependencies and the caller. Each query is limited to the principal's
 * tenant.
 */
export interface ToolUse extends ToolDeps {
  readonly principal: Principal
  /** The other instances of the installation; undefined: there is none to ask. */
  readonly peers?: PeerRequests | undefined
  /** All tools, for the one that describes them. */
  readonly listings: () => readonly ToolListing[]
  /** The proposal that a person approved; absent: the caller asks by itself. */
  readonly proposalId?: string | undefined
  readonly accept?: ChangeOrder['accept']
  /** Tells the audit log the row before and after. */
  readonly changed: (change: Change) => void
}

/** The effect on the platform; clients ask a person before a tool that changes something. */
export type Effect =
  | 'reads'
  /** Asks a person to change something. */
  | 'proposes'
  /** Reversible and idempotent. */
  | 'changes'
  /** Irreversible, or ends something live. */
  | 'destroys'

export interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string
  readonly title: string
  /** Tells a language model what the tool does, when to use it, and what comes next. */
  readonly description: string
  readonly effect: Effect
  /** The call of input `call_uuid` may be on another instance, which then runs the tool. */
  readonly isAboutCall?: true
  /** The result has no text that a client has given or stored: it is not cleaned. */
  readonly isOwnText?: true
  /** The tool may read many rows: its statements run on another thread than the calls. */
  readonly readsMuch?: true
  /** Scopes of the resources. `mcp:read`, or `mcp:write` for changes, is added. */
  readonly scopes: readonly Scope[]
  readonly input: I
  /** Schema of `data`. Fields that it does not name are removed. */
  readonly output: O
  /** Throws an `ApiError` that says what to do next. */
  readonly run: (input: z.output<I>, use: ToolUse) => z.input<O> | Promise<z.input<O>>
}

/** A tool as listed to clients. */
export interface ToolListing {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: false
  }
  readonly scopes: readonly Scope[]
}

export interface JsonSchema {
  readonly type: 'object'
  readonly [keyword: string]: unknown
}

export type ToolData = Readonly<Record<string, unknown>>

export type ToolAnswer =
  | { readonly kind: 'done'; readonly data: ToolData }
  /** `error.message` and its details say what to do next and contain nothing internal. */
  | { readonly kind: 'refused'; readonly error: ApiError }

export interface Tool {
  readonly name: string
  readonly effect: Effect
  readonly isAboutCall: boolean
  readonly scopes: readonly Scope[]
  readonly listing: ToolListing
  /**
   * Validates the arguments, runs the tool, and returns only the fields of the output schema.
   * Throws `ApiError`.
   */
  readonly use: (given: unknown, use: ToolUse) => Promise<ToolData>
}

export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(
  spec: ToolSpec<I, O>,
): Tool {
  const { name, effect, input, output } = spec
  const scopes: readonly Scope[] = [...scopesOf[effect], ...spec.scopes]
  let listing: ToolListing | undefined
  return {
    name,
    effect,
    scopes,
    isAboutCall: spec.isAboutCall === true,
    get listing() {
      return (listing ??= listingOf(spec, scopes))
    },
    async use(given, use) {
      const parsed = input.safeParse(withKnownTenant(input, given ?? {}))
      if (!parsed.success)
        throw badRequest(`The arguments of ${name} are invalid`, problemsOf(parsed.error, input))
      const run = async () => spec.run(parsed.data, use)
      const result = await (spec.readsMuch === true
        ? readApart(use.store, use.principal.tenantId, run)
        : run())
      return output.parse(spec.isOwnText === true ? result : clean(result))
    },
  }
}

/** The scopes of MCP, by the effect of a tool. */
const scopesOf: Readonly<Record<Effect, readonly Scope[]>> = {
  reads: ['mcp:read'],
  proposes: ['mcp:read', 'mcp:propose'],
  changes: ['mcp:write'],
  destroys: ['mcp:write'],
}

function listingOf<I extends z.ZodObject, O extends z.ZodObject>(
  { name, title, description, effect, input, output }: ToolSpec<I, O>,
  scopes: readonly Scope[],
): ToolListing {
  const answer = z.object({ success: z.literal(true), data: output })
  return {
    name,
    title,
    description:
      `${description} Requires the scope${scopes.length === 1 ? '' : 's'} ` +
      `${scopes.join(' and ')}.`,
    inputSchema: schemaOf(input, 'input'),
    outputSchema: schemaOf(answer, 'output'),
    annotations: {
      readOnlyHint: effect === 'reads',
      destructiveHint: effect === 'destroys',
      idempotentHint: true,
      openWorldHint: false,
    },
    scopes,
  }
}

/**
 * Removes what carries no information: a model reads every word. JSON Schema 2020-12 is the
 * protocol's default.
 */
function schemaOf(schema: z.ZodObject, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema }) => {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  return { ...json, type: 'object' }
}

/** One call of a changing tool. */
export interface ChangeUse extends ToolUse {
  /** A new UUID, by which the change may name an added row. */
  readonly changeId: string
  readonly reason: string | null
  /** Milliseconds UTC; null: until it is undone. */
  readonly expiresAt: number | null
  /**
   * How long the change lasts, as the end of a clause, such as ` for 24 h`; empty: until it is
   * undone. An effect says it so: the time of its end would be another when a person approves it.
   */
  readonly lasting: string
}

interface ChangeSpec<I extends z.ZodObject, O extends z.ZodObject> extends Omit<
  ToolSpec<I, O>,
  'effect' | 'run'
> {
  readonly effect: 'changes' | 'destroys'
  /** Optional for the tools of the specification. */
  readonly reason: 'required' | 'optional'
  /** The change takes a duration, after which the platform undoes it. */
  readonly expires?: true
  /**
   * Returns the effect of the call. Throws an `ApiError` that says what to do next. It changes
   * nothing: a dry run ends with it, and a call may run it twice.
   */
  readonly plan: (
    input: z.output<I>,
    use: ChangeUse,
  ) => Promise<Plan<z.input<O>>> | Plan<z.input<O>>
}

const changeInput = z.object({
  dry_run: dryRun,
  reason: changeReason.optional(),
  duration: changeDuration.optional(),
})

export function defineChange<I extends z.ZodObject, O extends z.ZodObject>(
  spec: ChangeSpec<I, O>,
): Tool {
  const { name, reason, expires, plan, ...rest } = spec
  const fields = changeInput.shape
  const input: z.ZodObject = spec.input.extend({
    dry_run: fields.dry_run,
    reason: reason === 'required' ? changeReason : fields.reason,
    ...(expires === true && { duration: fields.duration }),
  })
  const output: z.ZodObject = spec.output.extend(changeOutput)
  return defineTool({
    ...rest,
    name,
    input,
    output,
    async run(given, tool) {
      const use = useOf(changeInput.parse(given), tool)
      const order: ChangeOrder = { ...use, tool: name, scopes: spec.scopes }
      // It was checked against a schema that extends that of the tool.
      const own = given as z.output<I>
      const made = await change(tool, order, () => plan(own, use))
      const { before, after } = made.plan
      if (made.changeId !== null) tool.changed({ before, after })
      return { ...made.own, ...answerOf(made) }
    },
  })
}

function useOf({ dry_run, reason, duration }: z.output<typeof changeInput>, use: ToolUse) {
  return {
    ...use,
    isDryRun: dry_run,
    reason: reason ?? null,
    changeId: newUuid(use.randomBytes),
    expiresAt: duration === undefined ? null : use.now() + duration * 1_000,
    lasting: duration === undefined ? '' : lastingText(duration),
  }
}

/** 86,400 seconds: ` for 24 h`. */
export function lastingText(seconds: number): string {
  if (seconds % 3_600 === 0) return ` for ${seconds / 3_600} h`
  return seconds % 60 === 0 ? ` for ${seconds / 60} min` : ` for ${seconds} s`
}

/** A tool as REST runs it, with the same result. */
export const toolRequest = (name: string, given: unknown) => ({
  method: 'POST',
  target: `/api/v1/mcp/tools/${name}`,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify(given)),
})

export const time = z.string().meta({ format: 'date-time' })

/** Maximum rows in one result: a model reads all of them. */
export const MAX_ROWS = 200

/** Input of a tool that lists: `limit`, and `cursor` of the answer before. */
export const pageInput = (most: number, usual: number) => ({
  limit: z.int().min(1).max(most).default(usual),
  cursor: cursorQuery,
})

/** Output of a tool that lists. */
export const pageOutput = { total: z.int(), ...pageEndView }

interface PageRequest {
  readonly limit: number
  readonly cursor?: string | undefined
}

export const sliceOf = ({ limit, cursor }: PageRequest) => ({ limit, offset: skippedBy(cursor) })

/** `total`, `complete` and `cursor` of an answer with so many rows. */
export const endOfPage = (asked: PageRequest, rows: number, total: number) => ({
  total,
  ...pageEnd(skippedBy(asked.cursor) + rows, total),
})

/** The rows of a list in memory that are asked for. */
export const cut = <T>(list: readonly T[], asked: PageRequest): readonly T[] => {
  const { limit, offset } = sliceOf(asked)
  return list.slice(offset, offset + limit)
}

export const setId = z.int().min(1).max(65_535).describe('Number of a dispatcher set.')

export const callUuid = z.uuid().describe('`call_uuid` of a live call or of a call record.')
