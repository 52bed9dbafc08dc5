/** The header and URI rules of a carrier (SPECIFICATION.md §4.7). */
import { z } from 'zod'
import {
  headerRuleProblem,
  maxHeaderRules,
  maxPatternSteps,
  patternSteps,
  ruleActions,
  ruleDirections,
  ruleParts,
} from '../../schema/rules/header-rules.ts'
import { json } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'

const shape = {
  direction: z
    .enum(ruleDirections)
    .default('out')
    .describe('`in`: INVITEs of the carrier, as they are read. `out`: INVITEs to it.'),
  do: z.enum(ruleActions),
  header: z.string().max(64).describe('The header that is written, or `Request-URI`.'),
  part: z.enum(ruleParts).default('value').describe('What of it is written.'),
  parameter: z.string().max(64).exactOptional().describe('Name of the parameter, for such a part.'),
  value: z
    .string()
    .max(256)
    .exactOptional()
    .describe('For `set` and `add`: a text, with variables such as `{call_uuid}`.'),
  source: z.string().max(64).exactOptional().describe('For `copy`: the header that has the part.'),
  pattern: z
    .string()
    .max(128)
    .exactOptional()
    .describe('For `rewrite`: a regular expression; its first match is replaced.'),
  replacement: z
    .string()
    .max(128)
    .exactOptional()
    .describe('For `rewrite`: `$1` is what the first group holds. Absent: nothing.'),
}

const rule = z.strictObject(shape).superRefine((given, context) => {
  const problem = headerRuleProblem(given)
  if (problem === undefined) return
  context.addIssue({ code: 'custom', path: [problem.path], message: problem.message })
})

const rules = z
  .array(rule)
  .max(maxHeaderRules)
  .superRefine((given, context) => {
    const steps = patternSteps(given)
    if (steps <= maxPatternSteps) return
    const message = `the patterns have ${steps} steps together, the most is ${maxPatternSteps}`
    context.addIssue({ code: 'custom', message })
  })

const shown = z.strictObject({
  direction: z.enum(ruleDirections),
  do: z.enum(ruleActions),
  header: z.string(),
  part: z.enum(ruleParts),
  parameter: z.string().exactOptional(),
  value: z.string().exactOptional(),
  source: z.string().exactOptional(),
  pattern: z.string().exactOptional(),
  replacement: z.string().exactOptional(),
})

export const headerRules = field.of(
  { body: rules, view: z.array(shown), stored: json },
  {
    default: [],
    about:
      'What is changed in INVITEs of the carrier (before they are read) and to it (at the end), ' +
      'in this order.',
    example: [
      { direction: 'out', do: 'set', header: 'From', part: 'host', value: 'sip.example.com' },
    ],
  },
)
