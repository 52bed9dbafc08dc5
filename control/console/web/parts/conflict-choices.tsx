/** Shows what others have changed meanwhile beside what was entered: a person chooses for each. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { EditConflict, ConflictField } from '../api/api.ts'
import { choiceName, VERSION_NAME } from './save-row.ts'
import { Text } from './text.tsx'

/** Characters of a value; the form has all of it. */
const MAX_VALUE = 300

export function ConflictChoices({
  conflict: { etag, fields, isRemoval = false },
}: {
  readonly conflict: EditConflict
}) {
  const head = useRef<HTMLDivElement>(null)
  useEffect(() => {
    head.current?.scrollIntoView({ block: 'nearest' })
    head.current?.focus()
  }, [etag])
  const both = fields.filter(({ yours }) => yours !== undefined)
  const theirs = fields.filter(({ yours }) => yours === undefined)
  return (
    <div class="notice plain conflict" role="alert" tabIndex={-1} ref={head}>
      <input type="hidden" name={VERSION_NAME} value={etag} />
      <p>
        <strong>Somebody has changed this since you opened it.</strong> Nothing was{' '}
        {isRemoval ? 'deleted' : 'saved'}.{' '}
        {isRemoval
          ? 'Confirm again to delete it as it is now.'
          : both.length > 0
            ? 'Choose what is to stand, then save again.'
            : 'Save again to make your changes, too.'}
      </p>
      {both.map((field) => (
        <Choice key={`${field.name} ${field.there}`} field={field} />
      ))}
      {theirs.length > 0 && (
        <>
          {!isRemoval && <p>These changes of others stay:</p>}
          <ul>
            {theirs.map(({ name, label, there, was }) => (
              <li key={name}>
                {label}: <Text value={there} max={MAX_VALUE} />, was{' '}
                <Text value={was} max={MAX_VALUE} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

function Choice({ field: { name, label, there, yours = '' } }: { readonly field: ConflictField }) {
  const group = useRef<HTMLFieldSetElement>(null)
  /** The words of what is chosen in a list, in place of an id. */
  const chosen = useSignal<string | undefined>(undefined)
  useEffect(() => {
    const field = group.current?.form?.elements.namedItem(name)
    if (field instanceof HTMLSelectElement && field.value !== '')
      chosen.value = field.selectedOptions[0]?.text
  }, [yours])
  return (
    <fieldset class="choices" ref={group}>
      <legend>{label}</legend>
      <label class="flag">
        <input type="radio" name={choiceName(name)} value="theirs" required /> Theirs:{' '}
        <Text value={there} max={MAX_VALUE} />
      </label>
      <label class="flag">
        <input type="radio" name={choiceName(name)} value="yours" required /> Yours:{' '}
        <Text value={chosen.value ?? yours} max={MAX_VALUE} />
      </label>
    </fieldset>
  )
}
