/** The full schemas of one tool: the list that clients read has short ones. */
import { z } from 'zod'
import { ApiError } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import { didYouMean } from '../../../schema/rules/did-you-mean.ts'
import { defineTool, type ToolListing } from '../tool.ts'

const schema = z.record(z.string(), z.unknown())

export const describeTool = defineTool({
  name: 'describe_tool',
  title: 'Describe a tool',
  description:
    'Returns the full description and schemas of one tool, and the scopes that it requires.',
  effect: 'reads',
  isOwnText: true,
  scopes: [],
  input: z.strictObject({ name: text(100).min(1).describe('Name of the tool.') }),
  output: z.object({
    name: z.string(),
    description: z.string(),
    effect: z.enum(['reads', 'changes', 'destroys']),
    scopes: z.array(z.string()),
    input_schema: schema,
    output_schema: schema,
  }),
  run({ name }, { listings }) {
    const tools = listings()
    const tool = tools.find((each) => each.name === name)
    if (tool === undefined)
      throw new ApiError(
        404,
        'unknown_tool',
        `Unknown tool: tools/list lists the tools.${didYouMean(
          name,
          tools.map((each) => each.name),
        )}`,
      )
    return viewOf(tool)
  },
})

const viewOf = ({
  name,
  description,
  annotations: { readOnlyHint, destructiveHint },
  scopes,
  inputSchema,
  outputSchema,
}: ToolListing) => ({
  name,
  description,
  scopes: [...scopes],
  effect: readOnlyHint
    ? ('reads' as const)
    : destructiveHint
      ? ('destroys' as const)
      : ('changes' as const),
  input_schema: inputSchema,
  output_schema: outputSchema,
})
