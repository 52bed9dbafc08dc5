/** The tools that follow from a definition: they list, add, change and remove its rows. */
import { z } from 'zod'
import { transaction } from '../../../schema/sql/query.ts'
import type { Scope } from '../../auth/scopes.ts'
import { type RequestScope, requestScope } from '../../auth/tenants.ts'
import { type Plan, rowEffectOf } from '../../changes/change.ts'
import { nounWords } from '../../changes/field-words.ts'
import { fieldsOf, type Json, restorable } from '../../changes/kinds.ts'
import { text } from '../../http/fields.ts'
import { wordsFor } from '../../http/resource-operations.ts'
import type { Row } from '../../http/field-columns.ts'
import { patched, patchOf } from '../../resources/patch.ts'
import { found } from '../../resources/resource-routes.ts'
import {
  type AnyDefinition,
  kindOf,
  resourceDeps,
  type ResourceStore,
  storeOf,
} from '../../resources/resource.ts'
import {
  type ChangeUse,
  defineChange,
  defineTool,
  endOfPage,
  MAX_ROWS,
  pageInput,
  pageOutput,
  sliceOf,
  type Tool,
} from './tool.ts'

/**
 * The tools of a noun that has words for them. They do not look up the names of hosts, so a noun
 * that needs that gets only the one that reads. Those that write require every further scope that a
 * field of the noun may need; where its words do not say which, there is only the one that reads.
 */
export function generalTools(definition: AnyDefinition): readonly Tool[] {
  if (definition.general === undefined) return []
  const isCovered = definition.beyond === undefined || definition.general.scopes !== undefined
  const isPlain = definition.destinations === undefined && isCovered
  const { tools: wanted = ['add', 'change', 'remove'] } = definition.general
  const tools = [listTool, ...(isPlain ? wanted.map((each) => writing[each]) : [])]
  return tools.map((tool) => tool(definition, definition.general?.about ?? ''))
}

function listTool(definition: AnyDefinition, about: string): Tool {
  const { many } = wordsFor(definition.noun)
  return defineTool({
    name: `list_${snake(many)}`,
    title: `List ${many}`,
    description: `Lists ${many}. ${about}`,
    effect: 'reads',
    readsMuch: true,
    scopes: [`${definition.scope}:read`],
    input: z.strictObject({
      search: text(100).optional().describe('Part of the name.'),
      ...pageInput(MAX_ROWS, 50),
    }),
    output: z.object({ rows: z.array(z.object(definition.fields.view.shape)), ...pageOutput }),
    async run({ search, ...page }, { store, principal, now }) {
      const slice = { ...sliceOf(page), search }
      const { rows, total } = await storeOf(definition, { store }).list(
        requestScope(principal, now),
        slice,
      )
      return { rows: [...rows], ...endOfPage(page, rows.length, total) }
    },
  })
}

function addTool(definition: AnyDefinition, about: string): Tool {
  const { words, one } = wordsFor(definition.noun)
  return defineChange({
    name: `add_${snake(words)}`,
    title: `Add ${one}`,
    description: `Adds ${one}. ${about} undo_change removes it again.`,
    effect: 'changes',
    reason: 'required',
    expires: true,
    scopes: writeScopes(definition),
    input: z.strictObject({ fields: definition.fields.body }),
    output,
    plan: ({ fields: given }, use) =>
      planOf(definition, use, {
        id: null,
        given,
        write: (resource, asker) => resource.insert(given, asker),
      }),
  })
}

function changeTool(definition: AnyDefinition, about: string): Tool {
  const { noun } = definition
  const { words, one } = wordsFor(noun)
  const { body, onlyAtCreation } = definition.fields
  return defineChange({
    name: `change_${snake(words)}`,
    title: `Change ${one}`,
    description: `Changes ${one}. ${about} Absent fields keep their values.`,
    effect: 'changes',
    reason: 'required',
    expires: true,
    scopes: writeScopes(definition),
    input: z.strictObject({ id, fields: patchOf(body, onlyAtCreation) }),
    output,
    plan: ({ id: rowId, fields: given }, use) =>
      planOf(definition, use, {
        id: rowId,
        given,
        async write(resource, asker) {
          const document = found(await resource.document(asker, rowId), noun)
          await resource.replace(rowId, patched(body, document, given), asker)
          return rowId
        },
      }),
  })
}

function removeTool(definition: AnyDefinition, about: string): Tool {
  const { noun, general } = definition
  const { words, one } = wordsFor(noun)
  return defineChange({
    name: `remove_${snake(words)}`,
    title: `Remove ${one}`,
    description: `Removes ${one}. ${about} ${general?.removal ?? ''}`,
    effect: 'destroys',
    reason: 'required',
    scopes: writeScopes(definition),
    input: z.strictObject({ id }),
    output,
    plan: ({ id: rowId }, use) =>
      planOf(definition, use, {
        id: rowId,
        given: {},
        async write(resource, asker) {
          if ((await resource.remove(rowId, asker)) === 'absent') found(undefined, noun)
          return rowId
        },
      }),
  })
}

const writing = { add: addTool, change: changeTool, remove: removeTool }

const writeScopes = ({ scope, general }: AnyDefinition): readonly Scope[] => [
  `${scope}:write`,
  ...(general?.scopes ?? []),
]

const id = z.int().min(1).describe('Id of the row.')
const output = z.object({ id: z.int().nullable().describe('Null while it is not there.') })

/** Stands for the id of a row that does not exist yet. */
const NEW = '0'

interface RowWrite {
  /** Null: it is a new one. */
  readonly id: number | null
  readonly given: Row
  /** Resolves with the id of the row. It may run again from its beginning. */
  readonly write: (
    resource: ResourceStore<z.ZodObject, z.ZodObject>,
    asker: RequestScope,
  ) => Promise<number>
}

/** The plan is what the write does in a transaction that is rolled back. */
async function planOf(
  definition: AnyDefinition,
  use: ChangeUse,
  { id: rowId, given, write }: RowWrite,
): Promise<Plan<z.input<typeof output>>> {
  const name = kindOf(definition)
  const kind = restorable(use.kinds, name)
  if (kind === null) throw new Error(`a row of ${name} has no state`)
  const asker = requestScope(use.principal, use.now)
  const written = async () => {
    const resource = storeOf(definition, resourceDeps(use))
    const before = rowId === null ? null : await kind.read(String(rowId), use)
    const newId = await write(resource, asker)
    return { id: newId, before, after: await kind.read(String(newId), use) }
  }
  const { before, after } = await triedOut(use, written)
  const target = { kind: name, id: rowId === null ? NEW : String(rowId) }
  const row = { kind, target, noun: nounWords(definition.noun), given, isNew: rowId === null }
  const effect = await rowEffectOf(use, row, before, after)
  let made: { readonly id: number; readonly after: Json | null } | undefined
  return {
    target,
    ...(effect ?? unchanged(after)),
    affected: {},
    preview: { id: rowId },
    async apply() {
      made = await written()
      return { id: made.id }
    },
    ...(rowId === null && {
      applied: () => ({ id: String(made?.id ?? NEW), after: made?.after ?? null }),
    }),
  }
}

const unchanged = (state: Json | null) => ({
  before: fieldsOf(state),
  after: fieldsOf(state),
  effect: 'Nothing changes: it is so already.',
  undo: 'restores' as const,
})

/** The outcome of `work`, which is rolled back. */
async function triedOut<T>(
  { store }: Pick<ChangeUse, 'store'>,
  work: () => Promise<T>,
): Promise<T> {
  const outcomes: T[] = []
  try {
    await transaction(store, async () => {
      outcomes.push(await work())
      throw rolledBack
    })
  } catch (error) {
    if (error !== rolledBack) throw error
  }
  const [outcome] = outcomes.slice(-1)
  if (outcome === undefined) throw new Error('a transaction ended without its work')
  return outcome
}

const rolledBack = new Error('it was only tried')

/** `AI agent`: `ai_agent`. */
const snake = (words: string): string => words.toLowerCase().replaceAll(' ', '_')
