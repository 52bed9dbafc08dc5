/** Actions on many rows of a noun: its switch, where it has one, and deletion. */
import { getAll, send, type ConsoleAnswer } from '../api/api.ts'
import { figureText } from './format.ts'
import { removeForm } from './forms.tsx'
import type { ManyAction, ManyRows } from './many-action.ts'
import type { FormRow } from './schema-fields.ts'

type RemovedForm = Parameters<typeof removeForm>[0]

/** Other resources that may refer to a row. */
export interface Use<Of> {
  readonly path: string
  readonly one: string
  readonly many: string
  readonly isUse: (other: FormRow, of: Of) => boolean
  /** Absent: `name`. */
  readonly name?: string
}

export interface ManyNoun<Of> {
  readonly one: string
  readonly many: string
  readonly form: RemovedForm
  /** Says what a deletion does. */
  readonly effect: string
  readonly uses?: readonly Use<Of>[] | undefined
}

/** By one of these names a row is in use, or not. */
const flags = ['is_active', 'is_enabled', 'enabled'] as const

/** `rows`: of which it is seen what can be switched. `isMine`: the row of who asks. */
export function manyOf<Of extends { readonly id: number }>(
  noun: ManyNoun<Of>,
  rows: readonly Of[] | undefined,
  others: readonly ManyAction<Of>[] = [],
  isMine: (row: Of) => boolean = () => false,
): ManyRows<Of> {
  const first = rows?.[0]
  const flag = first && flags.find((name) => typeof fieldOf(first, name) === 'boolean')
  return {
    one: noun.one,
    many: lowered(noun.many),
    actions: [
      ...(flag === undefined ? [] : [switching(noun, flag, true, isMine)]),
      ...(flag === undefined ? [] : [switching(noun, flag, false, isMine)]),
      ...others,
      deletion(noun, isMine),
    ],
  }
}

const fieldOf = (row: object, name: string): unknown => Reflect.get(row, name)

/** `Alert rules`, and `AI agents`, within a sentence. */
const lowered = (many: string): string =>
  /^.[a-z]/.test(many) ? `${many.charAt(0).toLowerCase()}${many.slice(1)}` : many

function switching<Of extends { readonly id: number }>(
  { form: { path, labels } }: ManyNoun<Of>,
  flag: (typeof flags)[number],
  isOn: boolean,
  isMine: (row: Of) => boolean,
): ManyAction<Of> {
  const label = labels?.[flag] ?? 'In use'
  return {
    text: isOn ? 'Enable' : 'Disable',
    done: isOn ? 'enabled' : 'disabled',
    isDangerous: !isOn,
    effect: `“${label}” is switched ${isOn ? 'on' : 'off'}.`,
    spared: (rows) =>
      Promise.resolve(
        new Map(
          rows.flatMap((row): [Of, string][] => {
            if (isMine(row)) return [[row, 'that is you']]
            return fieldOf(row, flag) === isOn
              ? [[row, `it is ${isOn ? 'on' : 'off'} already`]]
              : []
          }),
        ),
      ),
    send: ({ id }) => send('PATCH', `${path}/${id}`, { [flag]: isOn }),
  }
}

const deletion = <Of extends { readonly id: number }>(
  { one, form, effect, uses }: ManyNoun<Of>,
  isMine: (row: Of) => boolean,
): ManyAction<Of> => ({
  text: 'Delete',
  done: 'deleted',
  isDangerous: true,
  effect: /cannot be undone/.test(effect) ? effect : `${effect} It cannot be undone.`,
  spared: async (rows) => {
    const mine = rows.filter(isMine).map((row): [Of, string] => [row, 'that is you'])
    return new Map([...(await usedRows(uses ?? [], rows)), ...mine])
  },
  send: async (row, _form, seen) => inWords(one, await removeForm(form, row, seen)),
})

/** The database only knows that something refers to it. */
export function inWords(one: string, answer: ConsoleAnswer<unknown>): ConsoleAnswer<unknown> {
  if (answer.kind !== 'failed' || answer.code !== 'in_use') return answer
  if (answer.headline !== 'Still referenced by other resources') return answer
  const message = `Something still refers to this ${one}: change or delete that first.`
  return { ...answer, message, headline: message }
}

const SHOWN_USERS = 3

/** A list that the user may not see says nothing: the server decides. */
async function usedRows<Of>(
  uses: readonly Use<Of>[],
  rows: readonly Of[],
): Promise<readonly [Of, string][]> {
  const found = new Map<Of, string[]>()
  for (const use of uses) {
    const answer = await getAll<FormRow>(use.path)
    if (answer.kind !== 'ok') continue
    for (const row of rows) {
      const users = answer.data.rows.filter((other) => use.isUse(other, row))
      if (users.length > 0) found.set(row, [...(found.get(row) ?? []), usersText(use, users)])
    }
  }
  return [...found].map(([row, texts]) => [row, texts.join(', ')])
}

function usersText<Of>({ one, many, name = 'name' }: Use<Of>, users: readonly FormRow[]): string {
  const names = users.slice(0, SHOWN_USERS).map((user) => String(user[name]))
  const more = users.length > names.length ? ', …' : ''
  const [count, verb] =
    users.length === 1 ? [`1 ${one}`, 'uses'] : [`${figureText(users.length)} ${many}`, 'use']
  return `${count} ${verb} it (${names.join(', ')}${more})`
}
