/** Who has changed what: filtered by the server, by what the address says. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { AuditEntry } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, onForm, textIn, withAll, words } from '../parts/form.tsx'
import { ListScreen } from '../parts/list.tsx'
import { address, setQuery } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Facts, Moment, Text } from '../parts/text.tsx'
import { auditQuery } from './audit-query.ts'
import { auditText } from './audit-words.ts'

const tones = { success: 'good', failed: 'bad', refused: 'warn' } as const
const outcomes = { success: '✓ done', failed: '✕ failed', refused: '✕ refused' } as const

const columns: readonly ShownColumn<AuditEntry>[] = [
  momentColumn('at', 'Time', (entry) => entry.at),
  textColumn('outcome', 'Outcome', ({ outcome }) => outcomes[outcome], {
    isMinor: true,
    tone: ({ outcome }) => tones[outcome],
  }),
  textColumn<AuditEntry>('what', 'What', auditText, {
    show: (entry) => (
      <>
        {entry.is_agent && <Badge tone="warn">agent</Badge>}{' '}
        <Text value={auditText(entry)} max={400} />
      </>
    ),
    second: ({ reason }) => reason !== null && <Text value={reason} max={300} />,
  }),
  textColumn('details', 'Details', (entry) => `${entry.action} ${entry.target} ${entry.address}`, {
    show: (entry) => <Details entry={entry} />,
  }),
]

function Details({ entry }: { entry: AuditEntry }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const isOpen = useSignal(false)
  useEffect(() => {
    if (isOpen.value) dialog.current?.showModal()
  }, [isOpen.value])
  return (
    <>
      <button
        type="button"
        aria-label={`Details of entry ${entry.id}`}
        onClick={() => (isOpen.value = true)}
      >
        Details
      </button>
      {isOpen.value && (
        <dialog
          ref={dialog}
          aria-label="Entry of the audit log"
          onClose={() => (isOpen.value = false)}
        >
          <h2>
            <Text value={auditText(entry)} max={800} />
          </h2>
          <Facts
            of={{
              Time: <Moment at={entry.at} />,
              Who: (
                <a
                  href={pathOf('audit', undefined, { ...address.value.query, actor: entry.actor })}
                >
                  <Text value={entry.actor} max={100} />
                </a>
              ),
              From: <Text value={entry.address} />,
              Request: <Text value={entry.action} max={200} />,
              Object: <Text value={entry.target} max={300} />,
              Answer: <Text value={`${entry.status} ${entry.code ?? ''}`.trim()} />,
              Reason: entry.reason !== null && <Text value={entry.reason} max={500} />,
              Change: entry.change_id !== null && <a href={pathOf('changes')}>Changes</a>,
              'Correlation id': <Text value={entry.correlation_id} />,
            }}
          />
          <p class="buttons">
            <button type="button" autoFocus onClick={() => dialog.current?.close()}>
              Close
            </button>
          </p>
        </dialog>
      )}
    </>
  )
}

export const AuditScreen = () => (
  <ListScreen
    label="Audit log"
    about="Who did what, when, and with which outcome."
    path={`/audit?limit=200${auditQuery(address.value.query)}`}
    columns={columns}
    keyOf={(entry) => entry.id}
    empty="There is no such entry."
    isWrapped
    isSearched
    filters={<Filters />}
  />
)

const texts = { actor: 'Who', action: 'Action', target: 'Object' } as const
const times = { from: 'From', to: 'To' } as const

function Filters() {
  const { query } = address.value
  const search = onForm((form) => {
    const names = [...Object.keys(texts), 'outcome', 'by', ...Object.keys(times)]
    setQuery(Object.fromEntries(names.map((name) => [name, textIn(form, name)])))
  })
  const entered = (name: string) => ({ name, defaultValue: query[name] ?? '' })
  return (
    <form class="tools" onSubmit={search} role="search" key={JSON.stringify(query)}>
      {Object.entries(texts).map(([name, text]) => (
        <Field key={name} {...entered(name)} label={text} maxLength={200} size={12} />
      ))}
      <Choice
        label="Outcome"
        name="outcome"
        value={query['outcome'] ?? ''}
        options={withAll(words('success', 'refused', 'failed'))}
      />
      <Choice
        label="By"
        name="by"
        value={query['by'] ?? ''}
        options={withAll({ agents: 'agents', others: 'people and programs' })}
      />
      {Object.entries(times).map(([name, text]) => (
        <Field key={name} {...entered(name)} label={text} type="datetime-local" />
      ))}
      <button class="primary">Filter</button>
    </form>
  )
}
