/**
 * A tool as `tools/list` shows it. A model reads the whole list in every conversation, so each tool is as short as it can
 * be while it can be chosen and called; `describe_tool` and REST have its full schemas (D261).
 */
import type { JsonSchema, ToolListing } from '../tool.ts'

/** A longer description is cut after the last sentence that fits. */
const MAX_DESCRIPTION = 90
/** As JSON: more words are left out, and a wrong one is refused with all of them. */
const MAX_WORDS = 120

/** Where they are optional, the instructions of the server are enough (`server.ts`). */
const impliedArguments: ReadonlySet<string> = new Set([
  'limit',
  'cursor',
  'confirm_self',
  // Older names.
  'start_date',
  'end_date',
])

export interface BriefListing {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema
  readonly annotations: Readonly<Record<string, boolean>>
}

const known = new WeakMap<ToolListing, BriefListing>()

export function briefListing(listing: ToolListing): BriefListing {
  const made = known.get(listing) ?? shortened(listing)
  known.set(listing, made)
  return made
}

const shortened = ({ name, description, inputSchema, annotations }: ToolListing): BriefListing => ({
  name,
  description: firstSentences(description),
  inputSchema: { type: 'object', ...argumentsOf(inputSchema) },
  // A result holds to the full schema, and so to this.
  outputSchema: { type: 'object' },
  // What is left out is the same for all tools, or has the protocol's default.
  annotations: annotations.readOnlyHint
    ? { readOnlyHint: true }
    : { destructiveHint: annotations.destructiveHint },
})

function firstSentences(whole: string): string {
  const description = whole.replace(/ Requires the scopes? [\w: ]+\.$/, '')
  if (description.length <= MAX_DESCRIPTION) return description
  let end = 0
  for (const { index } of description.matchAll(/\.(?= )/g))
    if (end === 0 || index < MAX_DESCRIPTION) end = index + 1
  return end === 0 ? description : description.slice(0, end)
}

/**
 * Types, allowed words and what is required. The instructions of the server describe what several tools take, and the
 * refusal of a wrong value says what is allowed.
 */
function argumentsOf(schema: JsonSchema): Json {
  const shown = Object.entries(objectIn(schema['properties'])).filter(
    ([name]) => !impliedArguments.has(name),
  )
  const properties = shown.map(
    ([name, property]) => [name, argumentOf(objectIn(property))] as const,
  )
  return {
    ...(properties.length > 0 && { properties: Object.fromEntries(properties) }),
    ...(schema['required'] !== undefined && { required: schema['required'] }),
  }
}

function argumentOf(schema: Json): Json {
  const { enum: words, items } = schema
  const types = typesOf(schema)
  return {
    ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
    ...(words !== undefined && JSON.stringify(words).length <= MAX_WORDS && { enum: words }),
    ...(items !== undefined && { items: argumentOf(objectIn(items)) }),
  }
}

/** Of one that may be a number or a name, both. */
function typesOf(schema: Json): string[] {
  const { type, anyOf } = schema
  if (typeof type === 'string') return [type]
  if (!Array.isArray(anyOf)) return []
  return [...new Set(anyOf.flatMap((each) => typesOf(objectIn(each))))]
}

type Json = Readonly<Record<string, unknown>>

const objectIn = (value: unknown): Json =>
  typeof value === 'object' && value !== null ? { ...value } : {}
