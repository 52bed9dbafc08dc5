/** Defines a tool for AI agents (SPECIFICATION.md §4.4). */
import { z } from 'zod'
import { readApart } from '../../schema/sql/read-apart.ts'
import type { Kinds } from '../changes/kinds.ts'
import type { AuditLog } from '../changes/audit/audit-log.ts'
import type { KeyStore } from '../auth/key-store.ts'
import type { KeyUsage } from '../auth/key-usage.ts'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import type { TenantScope } from '../auth/tenants.ts'
import type { Platform } from '../http/platform.ts'
import type { WithReports } from '../reports/reports.ts'
import { type ApiError, badRequest } from '../http/api-error.ts'
import type { AskedNodes } from '../nodes/other-nodes.ts'
import type { Change } from '../http/control-env.ts'
import { problemsOf } from '../http/validate.ts'
import type { Pause } from '../reports/cdr-store.ts'
import type { Telemetry } from '../observe/telemetry/telemetry.ts'
import type { AcceptedPlan } from './proposals/planned.ts'
import type { Proposals } from './proposals/proposals.ts'
import { clean } from '../http/clean-text.ts'

/** The dependencies of all tools. */
export interface ToolWorld
  extends
    Pick<
      Platform,
      'store' | 'engine' | 'nodes' | 'ocs' | 'settings' | 'now' | 'steadyNow' | 'randomBytes'
    >,
    WithReports {
  readonly kinds: Kinds
  readonly keys: KeyStore
  readonly tenants: Pick<TenantScope, 'clear'>
  readonly usage: Pick<KeyUsage, 'ofLastHour'>
  readonly audit: Pick<AuditLog, 'list'>
  readonly proposals: Pick<Proposals, 'tool' | 'toolNames' | 'propose' | 'list'>
  readonly telemetry: Pick<Telemetry, 'read' | 'readForTenant'>
  /** Yields to the event loop during a long search. */
  readonly pause: Pause
}

/** One call of a tool: the dependencies and the caller. Each query is limited to the principal's tenant. */
export interface ToolUse extends ToolWorld {
  readonly principal: Principal
  /** The other nodes of the installation; undefined: there is none to ask. */
  readonly elsewhere?: AskedNodes | undefined
  /** All tools, for the one that describes them. */
  readonly listings: () => readonly ToolListing[]
  /** The proposal that a person approved; absent: the caller asks by itself. */
  readonly proposalId?: string | undefined
  /** Is shown each plan before the change is made, and throws when it is not what the person has approved. */
  readonly accept?: ((plan: AcceptedPlan) => void) | undefined
  /** For the audit log: the row before and after. */
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
  /** For a language model: what the tool does, when to use it, what comes next. */
  readonly description: string
  readonly effect: Effect
  /** `call_uuid` of its input is a call that may be on another node, which then runs the tool. */
  readonly isAboutCall?: true
  /** The result has no text that a client has given or stored: it is not cleaned. */
  readonly isOwnText?: true
  /** It may read many rows: its statements run where calls do not wait for them. */
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
   * Validates the arguments, runs the tool, and returns only the fields of the output schema. Throws
   * `ApiError`.
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
      const parsed = input.safeParse(given ?? {})
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

/** Those of MCP, by what a tool does. */
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
    description: `${description} Requires the scope${scopes.length === 1 ? '' : 's'} ${scopes.join(' and ')}.`,
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
 * Removes what carries no information: a model reads every word. JSON Schema 2020-12 is the protocol's
 * default.
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
