/** What a tool for AI agents is made of (SPECIFICATION.md §4.4). */
import { z } from 'zod'
import type { KeyStore } from '../auth/keys/key-store.ts'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import type { ControlDeps } from '../deps.ts'
import { badRequest } from '../http/api-error.ts'
import type { Change } from '../http/control-env.ts'
import { problemsOf } from '../http/validate.ts'
import type { Pause } from '../pbx/reports/cdr-store.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { clean } from './clean.ts'

/** What the tools work with, the same for every call. */
export interface ToolWorld extends Pick<
  ControlDeps,
  'store' | 'engine' | 'ocs' | 'now' | 'steadyNow'
> {
  readonly keys: KeyStore
  readonly telemetry: Pick<Telemetry, 'read' | 'readForTenant'>
  /** Lets everything else have its turn in a long search. */
  readonly pause: Pause
}

/** One call: the world, and who asks. Every row is narrowed by the principal's tenant. */
export interface ToolUse extends ToolWorld {
  readonly principal: Principal
  /** For the audit: what a row was, and what it is now. */
  readonly changed: (change: Change) => void
}

/** What it does to the platform; clients ask a person before they run what changes something. */
type Effect =
  | 'reads'
  /** May be undone, and does the same when it is repeated. */
  | 'changes'
  /** Cannot be undone, or ends what is going on. */
  | 'destroys'

interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string
  readonly title: string
  /** Read by a language model: what it does, when to use it, what comes next. */
  readonly description: string
  readonly effect: Effect
  /** Of the resources; `mcp:read`, or `mcp:write` for what changes something, comes beside them. */
  readonly scopes: readonly Scope[]
  readonly input: I
  /** Of `data`. What it does not name never leaves. */
  readonly output: O
  /** Throws `ApiError`s that say what to do next. */
  readonly run: (input: z.output<I>, use: ToolUse) => z.input<O> | Promise<z.input<O>>
}

/** A tool as clients are told of it. */
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

export interface Tool {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly listing: ToolListing
  /** Checks the arguments, runs, and gives only what the output schema names. Throws `ApiError`. */
  readonly use: (given: unknown, use: ToolUse) => Promise<ToolData>
}

export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(
  spec: ToolSpec<I, O>,
): Tool {
  const { name, effect, input, output } = spec
  const scopes: readonly Scope[] = [effect === 'reads' ? 'mcp:read' : 'mcp:write', ...spec.scopes]
  let listing: ToolListing | undefined
  return {
    name,
    scopes,
    get listing() {
      return (listing ??= listingOf(spec, scopes))
    },
    async use(given, use) {
      const parsed = input.safeParse(given ?? {})
      if (!parsed.success)
        throw badRequest(`The arguments of ${name} are not valid`, problemsOf(parsed.error, input))
      return output.parse(clean(await spec.run(parsed.data, use)))
    },
  }
}

function listingOf<I extends z.ZodObject, O extends z.ZodObject>(
  { name, title, description, effect, input, output }: ToolSpec<I, O>,
  scopes: readonly Scope[],
): ToolListing {
  const answer = z.object({ success: z.literal(true), data: output })
  return {
    name,
    title,
    description: `${description} Needs the scopes ${scopes.join(' and ')}.`,
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

/** Without what says nothing: a model reads every word. JSON Schema 2020-12 is the protocol's default. */
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
