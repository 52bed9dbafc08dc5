/** Parts of dialogs that import tables: the file, and what is wrong in its lines. */
import { visibleText } from './visible-text.ts'

export interface LineProblem {
  readonly line: number
  readonly column: string
  readonly message: string
  readonly text: string
}

export const FileInput = ({ onFile }: { onFile: (file: File | undefined) => void }) => (
  <label>
    File{' '}
    <input
      type="file"
      accept=".csv,.txt,text/csv,text/plain"
      onChange={(event) => onFile(event.currentTarget.files?.[0])}
    />
  </label>
)

export const LineProblems = ({ of }: { of: readonly LineProblem[] }) => (
  <div class="wide" tabIndex={0} role="group" aria-label="What is wrong">
    <table aria-label="What is wrong, by line">
      <thead>
        <tr>
          <th scope="col">Line</th>
          <th scope="col">Column</th>
          <th scope="col">Problem</th>
          <th scope="col">The line</th>
        </tr>
      </thead>
      <tbody>
        {of.map(({ line, column, message, text }, index) => (
          <tr key={index}>
            <td class="figure">{line}</td>
            <td>{column}</td>
            <td>{visibleText(message, 200)}</td>
            <td>
              <code>{visibleText(text, 60)}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** `lines.3.rate_per_minute` is a problem of the third line. */
export function problemsOf(
  details: readonly { readonly path: string; readonly message: string }[],
  table: string,
): readonly LineProblem[] {
  const lines = table.split(/\r?\n/)
  return details.flatMap(({ path, message }) => {
    const [, line = '', column = ''] = /^lines\.(\d+)(?:\.(.*))?$/.exec(path) ?? []
    if (line === '') return []
    return [{ line: Number(line), column, message, text: lines[Number(line) - 1] ?? '' }]
  })
}
