/** Rates from a table: checked first, with what is wrong in each line, then imported. */
import { useSignal } from '@preact/signals'
import { importRates, type ConsoleAnswer } from '../api/api.ts'
import type { ImportReport } from '../api/views.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Choice } from '../parts/form.tsx'
import { figureText, plural } from '../parts/format.ts'
import { FileInput, type LineProblem, LineProblems, problemsOf } from '../parts/table-import.tsx'
import { visibleText } from '../parts/visible-text.ts'

interface ImportProps {
  readonly planId: number
  readonly onDone: () => void
}

export function ImportRates({ planId, onDone }: ImportProps) {
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
          planId={planId}
          onImport={(report) => (done.value = `Imported: ${reportText(report)}.${warned(report)}`)}
          onClose={() => {
            isOpen.value = false
            onDone()
          }}
        />
      )}
    </>
  )
}

const reportText = ({ created, updated, removed }: ImportReport): string =>
  [
    plural(created, 'new rate'),
    plural(updated, 'changed', 'changed'),
    ...(removed > 0 ? [`${figureText(removed)} removed before`] : []),
  ].join(', ')

const warned = ({ warnings = [] }: ImportReport): string =>
  warnings.map((warning) => ` ${warning}.`).join('')

const example = 'prefix,description,rate_per_minute\n49,Germany,0.02\n4915,Germany mobile,0.05\n'

interface DialogProps {
  readonly planId: number
  readonly onImport: (report: ImportReport) => void
  readonly onClose: () => void
}

function ImportDialog({ planId, onImport, onClose }: DialogProps) {
  const table = useSignal('')
  const mode = useSignal('merge')
  const allowsDefault = useSignal(false)
  /** Result for the table as it is; undefined: it was not checked. */
  const checked = useSignal<ImportReport | undefined>(undefined)
  const problems = useSignal<readonly LineProblem[]>([])
  const change = (work: () => void): void => {
    work()
    checked.value = undefined
    problems.value = []
  }
  const read = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return
    const text = await file.text()
    change(() => (table.value = text))
  }
  const confirm = async (): Promise<ConsoleAnswer<unknown> | { readonly kind: 'open' }> => {
    const isDryRun = checked.value === undefined
    const order = { mode: mode.value, isDryRun, allowsDefault: allowsDefault.value }
    const answer = await importRates(planId, table.value, order)
    if (answer.kind === 'failed') {
      problems.value = problemsOf(answer.details ?? [], table.value)
      // The table of problems has the details.
      return { ...answer, message: answer.headline ?? answer.message, details: [] }
    }
    if (answer.kind === 'ok' && isDryRun) {
      checked.value = answer.data
      return { kind: 'open' }
    }
    if (answer.kind === 'ok') onImport(answer.data)
    return answer
  }
  const { value: report } = checked
  return (
    <Dialog
      title="Import rates"
      action={report === undefined ? 'Check' : 'Import'}
      onConfirm={confirm}
      onClose={onClose}
    >
      <ColumnsNote />
      <FileInput onFile={(file) => void read(file)} />
      <label>
        Table
        <textarea
          name="table"
          rows={8}
          required
          spellcheck={false}
          placeholder={example}
          value={table.value}
          onInput={(event) => {
            const { value } = event.currentTarget
            change(() => (table.value = value))
          }}
        />
      </label>
      <Choice
        label="Rates of the plan that are not in the table"
        name="mode"
        value="merge"
        options={{ merge: 'stay', replace: 'are removed' }}
        onChange={(value) => change(() => (mode.value = value))}
      />
      <label>
        <input
          name="allow_default"
          type="checkbox"
          onChange={(event) => {
            const { checked: isAllowed } = event.currentTarget
            change(() => (allowsDefault.value = isAllowed))
          }}
        />{' '}
        A line without a prefix is meant: it prices every number that no other rate prices
      </label>
      <Checked problems={problems.value} report={report} />
    </Dialog>
  )
}

const ColumnsNote = () => (
  <p>
    The first line names the columns. <code>prefix</code> and <code>rate_per_minute</code> are
    needed; <code>description</code>, <code>connect_fee</code>, <code>first_increment</code>,{' '}
    <code>first_rate_per_minute</code>, <code>increment</code>, <code>blocked</code>,{' '}
    <code>period</code>, <code>effective_from</code> and <code>effective_to</code> may follow.
    Commas, semicolons or tabs separate the cells.
  </p>
)

interface CheckedProps {
  readonly problems: readonly LineProblem[]
  readonly report: ImportReport | undefined
}

/** Shows the findings of the check of the table. */
const Checked = ({ problems, report }: CheckedProps) => (
  <>
    {problems.length > 0 && <LineProblems of={problems} />}
    {report?.warnings?.map((warning) => (
      <p key={warning} role="alert">
        {visibleText(warning, 200)}.
      </p>
    ))}
    <p role="status">
      {report !== undefined && `The table is valid: ${reportText(report)}. Nothing is stored yet.`}
    </p>
  </>
)
