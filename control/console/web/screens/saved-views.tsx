/** Views of the list of calls that the user keeps by a name: filters, order, period and columns. */
import { useSignal } from '@preact/signals'
import { get, send } from '../api/api.ts'
import { sessionEnded } from '../api/session.ts'
import type { SavedView } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Field, onForm, textIn } from '../parts/form.tsx'
import { Popover } from '../parts/popover.tsx'
import { useResource, type Resource } from '../parts/resource.ts'
import { address, go } from '../parts/router.ts'
import { Problem, Text } from '../parts/text.tsx'

interface SavedViewsProps {
  /** Columns that are shown: a view has them, too. */
  readonly columns: readonly string[]
}

export function SavedViews({ columns }: SavedViewsProps) {
  return (
    <Popover text="Views" title="Saved views">
      {(close) => <Views columns={columns} close={close} />}
    </Popover>
  )
}

const viewPath = (name: string): string => `/saved-views/calls/${encodeURIComponent(name)}`

const pathTo = ({ query }: SavedView): string =>
  pathOf(address.value.screen, undefined, Object.fromEntries(new URLSearchParams(query)))

function Views({ columns, close }: SavedViewsProps & { close: () => void }) {
  const views = useResource('saved-views', () => get<readonly SavedView[]>('/saved-views'))
  const problem = useSignal<string | undefined>(undefined)
  const removed = useSignal<SavedView | undefined>(undefined)
  const change = async (work: ReturnType<typeof send>): Promise<boolean> => {
    const answer = await work
    if (answer.kind === 'signed-out') sessionEnded()
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    views.reload()
    return answer.kind === 'ok'
  }
  const save = ({ name, query }: Pick<SavedView, 'name' | 'query'>) =>
    change(send('PUT', viewPath(name), { query }))
  const remove = async (view: SavedView): Promise<void> => {
    if (await change(send('DELETE', viewPath(view.name)))) removed.value = view
  }
  const bringBack = async (view: SavedView): Promise<void> => {
    if (await save(view)) removed.value = undefined
  }
  return (
    <div class="stack">
      <Problem message={problem.value ?? views.problem.value} />
      <Kept
        views={views}
        onOpen={(view) => {
          close()
          go(pathTo(view))
        }}
        onRemove={(view) => void remove(view)}
      />
      {removed.value !== undefined && (
        <p role="status">
          <Text value={removed.value.name} max={60} /> is deleted.{' '}
          <button type="button" onClick={() => removed.value && void bringBack(removed.value)}>
            Undo
          </button>
        </p>
      )}
      <form
        class="stack"
        onSubmit={onForm(
          (form) => void save({ name: textIn(form, 'name'), query: shown(columns) }),
        )}
      >
        <Field label="Save this view as" name="name" required maxLength={60} autoComplete="off" />
        <button class="primary">Save</button>
      </form>
    </div>
  )
}

/** The address and the columns, as a view keeps them. */
const shown = (columns: readonly string[]): string => {
  const { query } = address.value
  return new URLSearchParams({ ...query, columns: columns.join(',') }).toString()
}

interface KeptProps {
  readonly views: Resource<readonly SavedView[]>
  readonly onOpen: (view: SavedView) => void
  readonly onRemove: (view: SavedView) => void
}

function Kept({ views, onOpen, onRemove }: KeptProps) {
  const { value: kept } = views.data
  if (kept === undefined) return null
  if (kept.length === 0) return <p class="empty">No view is saved.</p>
  return (
    <ul class="views">
      {kept.map((view) => (
        <li key={view.name}>
          <a
            href={pathTo(view)}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return
              event.preventDefault()
              event.stopPropagation()
              onOpen(view)
            }}
          >
            <Text value={view.name} max={60} />
          </a>
          <button
            type="button"
            aria-label={`Delete the view ${view.name}`}
            onClick={() => onRemove(view)}
          >
            Delete
          </button>
        </li>
      ))}
    </ul>
  )
}
