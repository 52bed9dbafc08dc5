/** The screens that follow from the definition of a noun. */
import type { GeneralScreen } from '../api/views.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { labelOf } from '../parts/schema-fields.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { titleOf } from './general-screens.ts'

interface AnyRow {
  readonly id: number
  readonly [field: string]: unknown
}

export const GeneralNounScreen = ({ screen }: { screen: GeneralScreen }) => (
  <ResourceScreen noun={nounOf(screen)} />
)

const nounOf = ({ one, many, path, scope, about, removal, columns }: GeneralScreen) =>
  ({
    one,
    many: titleOf(many),
    scope,
    about,
    effect: removal,
    nameOf: (row) => String(row[columns[0]?.name ?? 'id']),
    columns: columns.map(columnOf),
    form: { path },
  }) satisfies ScreenNoun<AnyRow>

function columnOf({ name, kind }: GeneralScreen['columns'][number]): ShownColumn<AnyRow> {
  const title = labelOf(name)
  switch (kind) {
    case 'figure':
      return figureColumn(name, title, (row) => figureIn(row[name]))
    case 'moment':
      return momentColumn(name, title, (row) => textIn(row[name]), { isMinor: true })
    case 'flag':
      return textColumn(name, title, (row) => (row[name] === true ? 'yes' : 'no'))
    case 'text':
      return textColumn(name, title, (row) => textIn(row[name]))
  }
}

const figureIn = (value: unknown): number | null => (typeof value === 'number' ? value : null)

function textIn(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
