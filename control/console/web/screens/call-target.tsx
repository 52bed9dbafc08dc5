/** Where calls to a number go, by the name that people gave it. */
import { Text } from '../parts/text.tsx'
import { useSetNames } from './names.ts'

interface TargetProps {
  /** The number of a dispatcher set; null: calls go elsewhere. */
  readonly setId: number | null
  /** Shown where it is no set, or one whose name the user may not see. */
  readonly text: string
}

export function Target({ setId, text }: TargetProps) {
  const names = useSetNames()
  return <Text value={(setId !== null && names.get(setId)) || text} max={50} />
}
