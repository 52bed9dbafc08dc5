/**
 * The screen of a resource from one description: its list, and forms to create, change and delete.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { getAll, getRows } from '../api/api.ts'
import { may } from '../api/session.ts'
import { Dialog } from './dialog.tsx'
import { figureText } from './format.ts'
import { List, type Action } from './list.tsx'
import type { ManyAction } from './many-action.ts'
import { inWords, manyOf, type ManyNoun, type Use } from './many-of.ts'
import { useAsked } from './prefill.ts'
import { useResource } from './resource.ts'
import { address } from './router.ts'
import { seenIn } from './save-row.ts'
import type { FormRow } from './schema-fields.ts'
import { removeForm, saveForm, SchemaFields, type SchemaForm } from './forms.tsx'
import type { ShownColumn } from './table.tsx'
import { Text } from './text.tsx'

export interface ScreenNoun<Of extends { readonly id: number }> {
  /** `outbound route` */
  readonly one: string
  /** `Outbound routes` */
  readonly many: string
  /** Needed to write. */
  readonly scope: string
  readonly form: SchemaForm
  readonly columns: readonly ShownColumn<Of>[]
  readonly nameOf: (row: Of) => string
  /** Says what a deletion does: `Calls to its prefix take other routes.` */
  readonly effect: string
  /** While one of these refers to it, it stays. */
  readonly uses?: readonly Use<Of>[]
  /** Says what the resource is for, over the list and where there is none. */
  readonly about: string
}

const REFRESH_MS = 10_000

interface ScreenProps<Of extends { readonly id: number }> {
  readonly noun: ScreenNoun<Of>
  /** Besides changing and deleting. */
  readonly actions?: (row: Of) => readonly Action[]
  /** Action that replaces the usual one. */
  readonly create?: Action
  /** Actions on many at once, besides switching and deleting them. */
  readonly manyActions?: readonly ManyAction<Of>[]
  /** The row of the user, who cannot be switched off or deleted with others. */
  readonly isMine?: (row: Of) => boolean
  readonly secretName?: string
  /** Actions of the page besides `create`. */
  readonly others?: ComponentChildren
  readonly children?: ComponentChildren
}

export function ResourceScreen<Of extends { readonly id: number }>({
  noun,
  actions,
  create = createOf(noun),
  manyActions,
  isMine,
  secretName,
  others,
  children,
}: ScreenProps<Of>) {
  const { many, one, scope, form, columns, nameOf, about } = noun
  // The server finds what the address asks for in a list that is too long to be here.
  const isCut = useSignal(false)
  const wanted = isCut.value ? (address.value.query['q'] ?? '') : ''
  const { data, problem, reload } = useResource(
    `${form.path} ${wanted}`,
    () => getAll<Of>(form.path, wanted),
    { everyMs: REFRESH_MS },
  )
  const { rows, total = 0 } = data.value ?? {}
  useEffect(() => {
    if (rows !== undefined && rows.length < total) isCut.value = true
  }, [rows])
  return (
    <List<Of>
      label={many}
      rows={rows}
      columns={columns}
      keyOf={({ id }) => id}
      empty={`There is no ${one} yet.`}
      problem={problem.value}
      reload={reload}
      isWritable={may(`${scope}:write`)}
      create={create}
      nameOf={nameOf}
      about={about}
      others={others}
      many={manyOf(manyNoun(noun), rows, manyActions, isMine)}
      actions={(row) => [changeOf(noun, row), ...(actions?.(row) ?? []), removeOf(noun, row)]}
      {...(secretName !== undefined && { secretName })}
    >
      {rows !== undefined && rows.length < total && (
        <p class="notice">
          There are {figureText(total)}; the first {figureText(rows.length)} are here.
        </p>
      )}
      {children}
    </List>
  )
}

export const createOf = <Of extends { readonly id: number }>({
  one,
  form,
}: ScreenNoun<Of>): Action => ({
  text: `New ${one}`,
  title: `New ${one}`,
  confirm: 'Create',
  done: `The ${one} is created.`,
  ask: <SchemaFields form={form} row={undefined} />,
  onConfirm: (entered) => saveForm(form, entered, undefined),
})

/** The part of a noun by which many of it are changed. */
export const manyNoun = <Of extends { readonly id: number }>({
  one,
  many,
  effect,
  uses,
  form,
}: ScreenNoun<Of>): ManyNoun<Of> => ({ one, many, effect, uses, form })

export const changeOf = <Of extends { readonly id: number }>(
  { one, form }: ScreenNoun<Of>,
  row: Of,
): Action => ({
  text: 'Change',
  title: `Change this ${one}`,
  confirm: 'Save',
  done: `The ${one} is changed.`,
  ask: <SchemaFields form={form} row={row} />,
  onConfirm: (entered) => saveForm(form, entered, row),
})

export const removeOf = <Of extends { readonly id: number }>(
  noun: ScreenNoun<Of>,
  row: Of,
): Action => ({
  text: 'Delete',
  title: `Delete this ${noun.one}?`,
  isDangerous: true,
  done: `The ${noun.one} is deleted.`,
  ask: (
    <>
      <p>
        <strong>
          <Text value={noun.nameOf(row)} max={80} />
        </strong>
        : {noun.effect}
      </p>
      {noun.uses?.map((use) => (
        <UsedBy key={use.path} use={use} row={row} />
      ))}
    </>
  ),
  onConfirm: async (entered) =>
    inWords(noun.one, await removeForm(noun.form, row, seenIn(entered))),
})

const SHOWN_USES = 5

function UsedBy<Of>({ use, row }: { use: Use<Of>; row: Of }) {
  const { path, one, many, isUse, name = 'name' } = use
  const { data } = useResource(`uses ${path}`, () => getRows<FormRow>(`${path}?limit=200`))
  const found = data.value?.rows.filter((other) => isUse(other, row)) ?? []
  if (found.length === 0) return null
  const names = found.slice(0, SHOWN_USES).map((other) => String(other[name]))
  return (
    <p class="notice">
      {found.length === 1 ? `1 ${one} uses it` : `${figureText(found.length)} ${many} use it`}:{' '}
      <Text value={names.join(', ')} max={200} />
      {found.length > names.length && ' …'}. It cannot be deleted before that is changed.
    </p>
  )
}

interface RowButtonsProps<Of extends { readonly id: number }> {
  readonly noun: ScreenNoun<Of>
  /** Undefined: it is being loaded. */
  readonly row: Of | undefined
  readonly onChange: () => void
  readonly onRemove: () => void
}

/** The buttons for the row that a page shows. */
export function RowButtons<Of extends { readonly id: number }>({
  noun,
  row,
  onChange,
  onRemove,
}: RowButtonsProps<Of>) {
  const change = useAsked('change')
  const removal = useAsked('delete')
  const isRemoval = removal.value
  const isAsked = isRemoval || change.value
  // The form stays that of the row from which it was drawn, while the page loads it again.
  const asked = useRef<Of | undefined>(undefined)
  asked.current = isAsked ? (asked.current ?? row) : undefined
  const { current: shown } = asked
  const action = shown !== undefined && (isRemoval ? removeOf : changeOf)(noun, shown)
  const isDisabled = row === undefined
  return (
    <>
      <button type="button" disabled={isDisabled} onClick={change.open}>
        Change
      </button>
      <button type="button" class="danger" disabled={isDisabled} onClick={removal.open}>
        Delete
      </button>
      {action && (
        <Dialog
          title={action.title}
          action={action.confirm ?? action.text}
          isDangerous={isRemoval}
          done={action.done}
          onConfirm={(form) => action.onConfirm(form, nowhere, nowhere)}
          onClose={(isDone) => {
            change.close()
            removal.close()
            if (isDone) (isRemoval ? onRemove : onChange)()
          }}
        >
          {action.ask}
        </Dialog>
      )}
    </>
  )
}

/** Changes and removals show no secret and no answer. */
const nowhere = (): void => undefined
