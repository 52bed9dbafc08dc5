/**
 * A table of things of the API with what may be done to them: each action asks in a dialog, one at
 * a time.
 */
import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useContext, useEffect } from 'preact/hooks'
import type { ConsoleAnswer } from '../api/api.ts'
import { useChosenRows } from './chosen-rows.ts'
import { Dialog } from './dialog.tsx'
import type { ManyRows } from './many-action.ts'
import { ManyBar } from './many-bar.tsx'
import { PageHead, ShownPage } from './page-head.tsx'
import { actionName, askedBy, withoutAsking } from './prefill.ts'
import { useView, type Resource } from './resource.ts'
import { address } from './router.ts'
import { Table, type ShownColumn, type TableProps } from './table.tsx'
import { CopyButton, Problem, Text } from './text.tsx'
import { visibleText } from './visible-text.ts'

export interface Action {
  /** Text on the button. */
  readonly text: string
  /** The name by which an address asks for it. Absent: that of the text. */
  readonly name?: string
  /** Text for screen readers, before the name of the row. Absent: `text`. */
  readonly label?: string
  readonly isDisabled?: boolean
  /** Title of the dialog. */
  readonly title: string
  /** Text on the button of the dialog. Absent: `text`. */
  readonly confirm?: string
  readonly isDangerous?: boolean
  /** The content of the dialog: words and fields. */
  readonly ask: ComponentChildren
  /** `onSecret`: shows what the server tells only now. `onAnswer`: shows what it has found out. */
  readonly onConfirm: (
    form: FormData,
    /** `more`: what belongs to it. */
    onSecret: (secret: string, more?: ComponentChildren) => void,
    onAnswer: (text: string) => void,
  ) => Promise<ConsoleAnswer<unknown>>
  /** Says afterwards what was done, where the server keeps no words of it. */
  readonly done?: string
}

interface Secret {
  readonly text: string
  readonly more: ComponentChildren
}

interface ListProps<Row> extends TableProps<Row> {
  readonly problem: string | undefined
  /** Called after an action. */
  readonly reload: () => void
  /** The user may do what follows. */
  readonly isWritable?: boolean
  /** Says what the list is for, in the head of the page. */
  readonly about?: ComponentChildren
  /** Actions of the page besides `create`, such as an export. */
  readonly others?: ComponentChildren
  /** Action in the head of the page; of a list within a page, over the table. */
  readonly create?: Action
  /** Actions on each row. */
  readonly actions?: (row: Row) => readonly Action[]
  /** Name of the row, for screen readers. */
  readonly nameOf?: (row: Row) => string
  /** Name of the secret where it is shown. */
  readonly secretName?: string
  /** Whether an address may ask for its actions: of several lists on a page, for one of them. */
  readonly isLinked?: boolean
  /** Actions on many rows at once. */
  readonly many?: ManyRows<Row> | undefined
  readonly children?: ComponentChildren
}

export function List<Row extends object>({
  problem,
  reload,
  isWritable = true,
  create,
  about,
  others,
  actions,
  nameOf,
  secretName,
  isLinked = true,
  many,
  children,
  ...table
}: ListProps<Row>) {
  const page = useContext(ShownPage)
  const { asked, ask, notices, dialog } = useActions(reload, secretName)
  const missing = useLinked({ create, actions, isWritable, isLinked, ...table }, asked)
  const actionsColumn: ShownColumn<Row> = {
    name: 'actions',
    title: 'Actions',
    isActions: true,
    value: () => null,
    show: (row) => (
      <span class="buttons">
        {actions?.(row).map((action) => (
          <button
            key={action.text}
            type="button"
            disabled={action.isDisabled}
            onClick={ask(action)}
            aria-label={`${action.label ?? action.text} ${visibleText(nameOf?.(row) ?? '', 80)}`}
          >
            {action.text}
          </button>
        ))}
      </span>
    ),
  }
  const hasActions = isWritable && actions !== undefined
  const createButton = isWritable && create !== undefined && (
    <button type="button" class="primary" onClick={ask(create)}>
      {create.text}
    </button>
  )
  const isWithin = page?.back !== undefined
  const chosen = useChosenRows()
  const choice = many && {
    chosen,
    nameOf: (row: Row) => nameOf?.(row) ?? String(table.keyOf(row)),
    bar: (
      <ManyBar
        of={many}
        rows={table.rows ?? []}
        chosen={chosen}
        keyOf={table.keyOf}
        nameOf={(row) => nameOf?.(row) ?? String(table.keyOf(row))}
        isWritable={isWritable}
        onDone={reload}
      />
    ),
  }
  return (
    <>
      {!isWithin && (
        <PageHead about={about}>
          {others}
          {createButton}
        </PageHead>
      )}
      <Problem message={problem} />
      {missing.value !== undefined && (
        <p class="notice" role="status">
          {missing.value}
        </p>
      )}
      {notices}
      {children}
      <Table
        {...table}
        choice={choice}
        {...(isWithin &&
          createButton !== false && {
            filters: (
              <>
                {table.filters}
                {createButton}
              </>
            ),
          })}
        columns={hasActions ? [...table.columns, actionsColumn] : table.columns}
      />
      {dialog}
    </>
  )
}

/** Asks in a dialog before each action, one at a time, and shows what only now can be shown. */
export function useActions(reload: () => void, secretName?: string) {
  const asked = useSignal<Action | undefined>(undefined)
  const secret = useSignal<Secret | undefined>(undefined)
  const answer = useSignal<string | undefined>(undefined)
  const ask = (action: Action) => () => {
    asked.value = action
    answer.value = undefined
  }
  const close = (): void => {
    asked.value = undefined
    reload()
  }
  const { value: open } = asked
  const notices = (
    <>
      {secret.value !== undefined && (
        <SecretNotice
          name={secretName}
          secret={secret.value}
          onDone={() => (secret.value = undefined)}
        />
      )}
      {answer.value !== undefined && (
        <AnswerNotice text={answer.value} onDone={() => (answer.value = undefined)} />
      )}
    </>
  )
  const dialog = (
    <>
      {open !== undefined && (
        <Dialog
          title={open.title}
          action={open.confirm ?? open.text}
          isDangerous={open.isDangerous === true}
          onConfirm={(form) =>
            open.onConfirm(
              form,
              (text, more) => (secret.value = { text, more }),
              (text) => (answer.value = text),
            )
          }
          done={open.done}
          onClose={close}
        >
          {open.ask}
        </Dialog>
      )}
    </>
  )
  return { asked, ask, notices, dialog }
}

interface LinkedList<Row> extends Pick<ListProps<Row>, 'rows' | 'keyOf'> {
  readonly isWritable: boolean
  readonly isLinked: boolean
  readonly create: Action | undefined
  readonly actions: ListProps<Row>['actions'] | undefined
}

/** Opens what the address asks for, once the rows are there; says why it cannot. */
function useLinked<Row>(list: LinkedList<Row>, open: Signal<Action | undefined>) {
  const missing = useSignal<string | undefined>(undefined)
  const { query } = address.value
  const found = list.isLinked ? linkedAction(list, query) : undefined
  const isFound = found !== undefined
  useEffect(() => {
    if (found === undefined || open.peek() !== undefined) return
    missing.value = typeof found === 'string' ? found : undefined
    if (typeof found === 'string') withoutAsking()
    else open.value = found
  }, [isFound, query['new'], query['do'], query['of']])
  return missing
}

/** Undefined: the address asks for nothing here, or the rows are not there yet. */
function linkedAction<Row>(
  { create, actions, isWritable, rows, keyOf }: LinkedList<Row>,
  query: Readonly<Record<string, string>>,
): Action | string | undefined {
  const asked = askedBy(query)
  if (asked.kind === 'nothing') return undefined
  // It asks for something of the page.
  if (asked.kind === 'action' && asked.of === undefined) return undefined
  if (!isWritable) return 'The link asks for a change that you may not make here.'
  if (asked.kind === 'new') return create
  if (rows === undefined) return undefined
  const row = rows.find((each) => String(keyOf(each)) === asked.of)
  if (row === undefined) return 'What the link asks for is no longer here.'
  const action = actions?.(row).find(
    (each) => (each.name ?? actionName(each.text)) === asked.action,
  )
  if (action === undefined || action.isDisabled === true)
    return 'What the link asks for cannot be done now.'
  return action
}

interface SecretNoticeProps {
  readonly name: string | undefined
  readonly secret: Secret
  readonly onDone: () => void
}

const SecretNotice = ({ name, secret: { text, more }, onDone }: SecretNoticeProps) => (
  <div class="notice" role="status">
    {name}, shown only now: <code class="token">{text}</code> <CopyButton text={text} />{' '}
    <button type="button" onClick={onDone}>
      Done
    </button>
    {more}
  </div>
)

const AnswerNotice = ({ text, onDone }: { text: string; onDone: () => void }) => (
  <div class="notice" role="status">
    <Text value={text} max={MAX_ANSWER} />{' '}
    <button type="button" onClick={onDone}>
      Done
    </button>
  </div>
)

/** Characters of an answer; the API has all of it. */
const MAX_ANSWER = 2_000

const REFRESH_MS = 10_000

interface ListScreenProps<Row> extends Omit<
  ListProps<Row>,
  'rows' | 'problem' | 'reload' | 'many'
> {
  /** Path of the resource. */
  readonly path: string
  /** Loads it again after such an event. */
  readonly events?: RegExp
  /** Actions on many of these rows at once. */
  readonly many?: (rows: readonly Row[] | undefined) => ManyRows<Row>
}

export function ListScreen<Row extends object>({
  path,
  events,
  many,
  ...props
}: ListScreenProps<Row>) {
  const options = { everyMs: REFRESH_MS, ...(events !== undefined && { events }) }
  const { data, problem, reload } = useView<readonly Row[]>(path, options)
  return (
    <List
      {...props}
      rows={data.value}
      problem={problem.value}
      reload={reload}
      many={many?.(data.value)}
    />
  )
}

interface LoadedProps<T> {
  readonly of: Pick<Resource<T>, 'data' | 'problem'> & Partial<Pick<Resource<T>, 'isGone'>>
  readonly children: (value: T) => ComponentChildren
}

/**
 * Shows one resource of the API; before it is loaded a notice, and the reason when it cannot be
 * loaded. A thing that is gone is one sentence.
 */
export function Loaded<T>({ of: { data, problem, isGone }, children }: LoadedProps<T>) {
  const page = useContext(ShownPage)
  if (isGone?.value === true)
    return (
      <p role="alert" class="notice">
        {page?.title ?? 'It'} not found: it has been deleted, or it is not yours to see.
      </p>
    )
  if (data.value === undefined && problem.value === undefined) return <p class="empty">Loading …</p>
  return (
    <>
      <Problem message={problem.value} />
      {data.value !== undefined && children(data.value)}
    </>
  )
}
