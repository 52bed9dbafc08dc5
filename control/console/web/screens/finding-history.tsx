/** Findings of the past and the present: since when, how long, and who dealt with them. */
import { useSignal } from '@preact/signals'
import { get, type ConsoleAnswer } from '../api/api.ts'
import { now } from '../api/browser.ts'
import type { KeptFinding, KeptFindings } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import { absent } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { findingText, findingTitle, handledText, lastedText, markText } from './finding-words.ts'
import { useNodeNames } from './names.ts'

const LIMIT = 50

const tones = { open: 'bad', acknowledged: 'warn', snoozed: 'plain', closed: 'good' } as const

type Marks = Pick<KeptFindings, 'findings'>

const none: ConsoleAnswer<Marks> = { kind: 'ok', data: { findings: [] }, meta: undefined }

export function FindingHistory() {
  const names = useNodeNames()
  /** Cursors of the pages before this one. */
  const cursors = useSignal<readonly string[]>([])
  const cursor = cursors.value.at(-1)
  const { data, problem } = useResource(`findings ${cursor ?? ''}`, () =>
    get<KeptFindings>(`/findings?limit=${LIMIT}${cursor === undefined ? '' : `&cursor=${cursor}`}`),
  )
  const context = { nodes: names, present: now() }
  const columns: readonly ShownColumn<KeptFinding>[] = [
    textColumn('state', 'State', ({ state }) => state, {
      show: ({ state }) => <Badge tone={tones[state]}>{state}</Badge>,
    }),
    textColumn<KeptFinding>('what', 'Finding', (each) => findingTitle(each, context), {
      max: 120,
      second: (each) => <Text value={findingText(each)} max={300} />,
      also: findingText,
    }),
    textColumn('severity', 'Severity', ({ severity }) => severity, { isMinor: true }),
    textColumn('opened', 'Opened', ({ opened_at }) => opened_at, {
      show: ({ opened_at: at }) => <Moment at={at} />,
    }),
    textColumn('closed', 'Closed', ({ closed_at }) => closed_at ?? '', {
      show: ({ closed_at: at }) => (at === null ? absent : <Moment at={at} />),
    }),
    textColumn('lasted', 'Lasted', (each) => lastedText(each, context.present)),
    textColumn('who', 'Dealt with', whoText, { max: 200 }),
  ]
  const page = data.value
  return (
    <section aria-labelledby="findings-history">
      <h2 id="findings-history">History</h2>
      <Problem message={problem.value} />
      <Table
        label="History of findings"
        rows={page?.findings}
        columns={columns}
        keyOf={({ id }) => id}
        isWrapped
        empty="Nothing was found yet: a search a minute keeps what it finds."
      />
      <p class="buttons">
        {cursors.value.length > 0 && (
          <button type="button" onClick={() => (cursors.value = cursors.value.slice(0, -1))}>
            Newer
          </button>
        )}
        {page?.cursor != null && (
          <button
            type="button"
            onClick={() => (cursors.value = [...cursors.value, page.cursor ?? ''])}
          >
            Older
          </button>
        )}
      </p>
    </section>
  )
}

const whoText = (finding: KeptFinding): string =>
  [markText(finding), handledText(finding)].filter((text) => text !== '').join(' ')

/** Who has acknowledged or snoozed which findings; none where the user may not ask. */
export const useMarks = (isAsked: boolean) =>
  useResource<Marks>(
    'finding marks',
    () =>
      isAsked
        ? get<Marks>('/findings?state=acknowledged,snoozed&limit=200')
        : Promise.resolve(none),
    { everyMs: 30_000 },
  )
