/** Telephone numbers and blocks: whose they are, and where calls to them go. */
import { useSignal } from '@preact/signals'
import { importNumbers } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { NumberReport, PhoneNumber } from '../api/views.ts'
import { tenantLine, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { plural } from '../parts/format.ts'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { Target } from './call-target.tsx'
import { Text } from '../parts/text.tsx'
import { FileInput, type LineProblem, LineProblems, problemsOf } from '../parts/table-import.tsx'

const numberOf = ({ number, last_number: last }: PhoneNumber): string =>
  last === null ? number : `${number} to ${last}`

const targetOf = ({ set_id, extension, extension_domain, agent }: PhoneNumber): string => {
  if (set_id !== null) return `set ${set_id}`
  if (extension !== null) return `${extension}@${extension_domain}`
  return agent ?? 'as routes say'
}

const noun: ScreenNoun<PhoneNumber> = {
  one: 'number',
  many: 'Numbers',
  scope: 'customers',
  about: 'A number, or a block of numbers, has an owner, and says where calls to it go.',
  effect: 'Routes decide about calls to it.',
  nameOf: numberOf,
  columns: [
    textColumn('number', 'Number', numberOf, {
      also: (each) => each.display_name,
      second: (each) => each.display_name !== null && <Text value={each.display_name} max={40} />,
    }),
    textColumn('customer', 'Customer', ({ customer }) => customer, {
      max: 40,
      also: ({ tenant }) => tenant,
      second: (each) => tenantLine(each),
    }),
    textColumn('target', 'Calls go to', targetOf, {
      show: (each) => <Target setId={each.set_id} text={targetOf(each)} />,
    }),
    textColumn('state', 'State', ({ is_active }) => (is_active ? 'active' : 'inactive'), {
      tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/numbers',
    names: ['number', 'last_number', 'tenant', 'customer', 'set', 'extension', 'agent'],
    more: [
      'extension_domain',
      'display_name',
      'is_active',
      'monthly_fee',
      'attestation',
      'verified_since',
      'emergency_address',
    ],
    labels: {
      last_number: 'Last number of a block',
      set: 'Calls go to the dispatcher set',
      extension: 'Calls go to the extension',
      agent: 'Calls go to the AI agent',
      display_name: 'Shown name',
      is_active: 'In use',
    },
    hints: { number: 'Such as +4930100.', last_number: 'Empty: one number.' },
    words: { attestation: { '': 'as its owner says' } },
  },
}

export const NumbersScreen = () => (
  <ResourceScreen
    noun={noun}
    others={
      <>
        <a href="/api/v1/numbers/export" download="numbers.csv">
          Export CSV
        </a>
        {may('customers:write') && <ImportNumbers />}
      </>
    }
  />
)

function ImportNumbers() {
  const isOpen = useSignal(false)
  const done = useSignal('')
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Import CSV
      </button>
      <span role="status">{done.value}</span>
      {isOpen.value && (
        <ImportDialog
          onImport={(report) => (done.value = `Imported: ${reportText(report)}.`)}
          onClose={() => (isOpen.value = false)}
        />
      )}
    </>
  )
}

const reportText = ({ created, updated }: NumberReport): string =>
  `${plural(created, 'new number')}, ${plural(updated, 'changed', 'changed')}`

const example = 'number,last_number,customer,extension\n+4930100,,Acme,101\n'

interface DialogProps {
  readonly onImport: (report: NumberReport) => void
  readonly onClose: () => void
}

function ImportDialog({ onImport, onClose }: DialogProps) {
  const table = useSignal('')
  /** Result for the table as it is; undefined: it was not checked. */
  const checked = useSignal<NumberReport | undefined>(undefined)
  const problems = useSignal<readonly LineProblem[]>([])
  const take = (text: string): void => {
    table.value = text
    checked.value = undefined
    problems.value = []
  }
  const confirm = async () => {
    const isDryRun = checked.value === undefined
    const answer = await importNumbers(table.value, isDryRun)
    if (answer.kind === 'failed') {
      problems.value = problemsOf(answer.details ?? [], table.value)
      return { ...answer, message: answer.headline ?? answer.message, details: [] }
    }
    if (answer.kind === 'ok' && isDryRun) {
      checked.value = answer.data
      return { kind: 'open' } as const
    }
    if (answer.kind === 'ok') onImport(answer.data)
    return answer
  }
  const { value: report } = checked
  return (
    <Dialog
      title="Import numbers"
      action={report === undefined ? 'Check' : 'Import'}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>
        The first line names the columns, as an export does. Only <code>number</code> is needed;
        columns that are left out keep their values.
      </p>
      <FileInput onFile={(file) => void file?.text().then(take)} />
      <label>
        Table
        <textarea
          name="table"
          rows={8}
          required
          spellcheck={false}
          placeholder={example}
          value={table.value}
          onInput={(event) => take(event.currentTarget.value)}
        />
      </label>
      {problems.value.length > 0 && <LineProblems of={problems.value} />}
      <p role="status">
        {report !== undefined &&
          `The table is valid: ${reportText(report)}. Nothing is stored yet.`}
      </p>
    </Dialog>
  )
}
